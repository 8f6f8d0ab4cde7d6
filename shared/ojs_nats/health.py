"""`/healthz`, `/readyz` and `/metrics` for a service that has no HTTP server of its own."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec
from aiohttp import web

from ojs_nats import metrics
from ojs_nats.errors import OjsError
from ojs_nats.listen import Listener
from ojs_nats.settings import Settings
from ojs_nats.store import Store

__all__ = ["health_listener"]

_SHUTDOWN_SECONDS: Final = 0.5


def health_listener(name: str, store: Store, settings: Settings, port: int) -> Listener:
    """`/healthz` is 200 while the process runs, `/readyz` 503 with the reason while NATS is away.

    `/metrics` is for Prometheus.
    """
    started = time.monotonic()

    def answer(http_status: int, **members: Any) -> web.Response:
        body = {"service": name, "instance": settings.instance, "uptime_seconds": int(time.monotonic() - started), **members}
        return web.Response(status=http_status, body=msgspec.json.encode(body), content_type="application/json")

    async def alive(_request: web.Request) -> web.Response:
        return answer(200, status="ok")

    async def ready(_request: web.Request) -> web.Response:
        try:
            latency = await store.ping()
        except OjsError as error:
            return answer(503, status="degraded", reason=error.message)
        return answer(200, status="ok", latency_ms=round(latency, 3))

    async def measured(_request: web.Request) -> web.Response:
        return web.Response(body=await metrics.exposition(), content_type=metrics.CONTENT_TYPE)

    app = web.Application()
    app.router.add_get("/healthz", alive)
    app.router.add_get("/readyz", ready)
    app.router.add_get("/metrics", measured)
    return Listener(app, settings.host, port, shutdown_timeout=_SHUTDOWN_SECONDS)
