"""`/healthz`, `/readyz` and `/metrics` for a service that has no HTTP server of its own."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from ojs_engine.base.errors import OjsError
from ojs_engine.base.readable import readable_headers, require_readable
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_link.timings import Timings
from ojs_runtime.browsers import DECIDING, HOST, Browsers
from ojs_runtime.listen import Listener
from ojs_runtime.settings import Settings


class HealthTimings(Timings, frozen=True, kw_only=True):
    """How long requests about health may take."""

    silence_s: float = 30.0
    """How long a connection may bring no request, or none that is whole."""
    shutdown_s: float = 0.5
    """Requests under way have this long to finish when the process stops."""


DRAINING: Final = "this process is about to stop"
"""Why a process isn't ready that drains."""


class Readiness(msgspec.Struct, frozen=True):
    """Why a process can't work now, None if it can, and what else `/readyz` tells."""

    reason: str | None
    members: dict[str, Any]


async def readiness_of(store: Store) -> Readiness:
    """Return whether NATS stores what is written."""
    try:
        latency = await store.ready()
    except OjsError as error:
        return Readiness(error.message, {})
    return Readiness(None, {"latency_ms": round(latency, 3)})


def health_listener(
    name: str,
    settings: Settings,
    port: int,
    check: Callable[[], Awaitable[Readiness]],
    timings: HealthTimings = HealthTimings(),
) -> Listener:
    """`/healthz` is 200 while the process runs, `/readyz` 503 with the reason while `check` gives one.

    `/metrics` is for Prometheus.
    """
    started = time.monotonic()

    def answer(http_status: int, **members: Any) -> web.Response:
        body = {"service": name, "instance": settings.instance, "uptime_seconds": int(time.monotonic() - started), **members}
        return web.Response(status=http_status, body=msgspec.json.encode(body), content_type="application/json")

    async def alive(_request: web.Request) -> web.Response:
        return answer(200, status="ok")

    async def ready(_request: web.Request) -> web.Response:
        found = await check()
        if found.reason is not None:
            return answer(503, status="degraded", reason=found.reason, **found.members)
        return answer(200, status="ok", **found.members)

    async def measured(_request: web.Request) -> web.Response:
        return web.Response(body=await metrics.exposition(), content_type=metrics.CONTENT_TYPE)

    browsers = Browsers(settings.health_host, settings.allowed_hosts, ())

    @web.middleware
    async def guarded(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            headers, unreadable = readable_headers(request.headers)
            require_readable(unreadable, DECIDING)
            host = headers.get(HOST)
            browsers.admit_name(host)
            browsers.admit(request.method, headers, host)
        except OjsError as error:
            return answer(error.info.status, status="refused", reason=error.message, hint=error.hint)
        return await handler(request)

    app = web.Application(middlewares=[guarded])
    app.router.add_get("/healthz", alive)
    app.router.add_get("/readyz", ready)
    app.router.add_get("/metrics", measured)
    host, silence_s = settings.health_host, timings.silence_s
    return Listener(app, host, port, shutdown_timeout=timings.shutdown_s, keepalive_timeout=silence_s)
