"""Health and metrics of a worker, for orchestrators and Prometheus.

Served by the thread that sends heartbeats, so that it answers while a handler blocks the loop, and says so.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

import msgspec
from aiohttp import web

from ojs_nats._extras import extra
from ojs_nats.chains import ExecutionChain
from ojs_nats.middleware._metrics import Metrics
from ojs_nats.worker._lifecycle import Vitals

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import GaugeMetricFamily

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Health:
    """At `host` and `port`: `/healthz`, `/readyz`, `/metrics`. Raises OSError if there is no room, MissingDependencyError
    without prometheus-client.

    On a loopback address it answers only requests whose `Host` is a name of loopback: a web page could else
    read it under a name of its own that points here (DNS rebinding). The jobs' metrics are counted by a
    middleware that it puts into `chain`, unless there is one already.
    """

    def __init__(self, host: str, port: int, chain: ExecutionChain, vitals: Callable[[], Vitals]) -> None:
        prometheus = extra("prometheus_client", of="metrics", what="the health endpoint")
        self._expose: Callable[[CollectorRegistry], bytes] = prometheus.generate_latest
        self._everything: CollectorRegistry = prometheus.REGISTRY
        self._own: CollectorRegistry = prometheus.CollectorRegistry()
        self._gauge: type[GaugeMetricFamily] = extra(
            "prometheus_client.core", of="metrics", what="the health endpoint"
        ).GaugeMetricFamily
        self._vitals = vitals
        if not any(isinstance(each, Metrics) for each in chain):  # a metric that is there twice can't be scraped
            chain.prepend(Metrics(self._own), "Metrics")
        self._own.register(self)
        self._fetches = prometheus.Histogram(
            "ojs_worker_fetch_duration_seconds",
            "How long the server took to answer a fetch, with its waiting for jobs.",
            ("found",),
            registry=self._own,
        )
        self._names = _LOOPBACK | {host.lower()} if _is_loopback(host) else None
        """The hosts that it answers to; None for any."""
        self._socket = socket.create_server((host, port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def port(self) -> int:
        """The port that it listens on, also if 0 was asked for."""
        port: int = self._socket.getsockname()[1]
        return port

    def fetched(self, seconds: float, count: int) -> None:
        """A fetch has been answered with so many jobs."""
        self._fetches.labels("jobs" if count else "nothing").observe(seconds)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """In the loop that enters it."""
        app = web.Application(middlewares=[self._guarded])
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            yield
        finally:
            await runner.cleanup()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """For prometheus-client, which calls it with every scrape."""
        now = self._vitals()
        yield self._gauge("ojs_worker_active", "Handlers that run now.", now.active)
        yield self._gauge("ojs_worker_concurrency", "Handlers that may run at a time.", now.concurrency)
        yield self._gauge("ojs_worker_heartbeat_age_seconds", "Since the server answered a heartbeat.", now.silent_s)
        yield self._gauge("ojs_worker_loop_turns", "0 while a handler blocks the event loop, else 1.", now.loop_turns)

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        host = request.headers.get("Host")
        if self._names is not None and host is not None and (name := _name_of(host)) not in self._names:
            refusal = f"Host is {name[:80]!r}, which is no name of this port; use localhost\n"
            return web.Response(status=403, text=refusal)
        return await handler(request)

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _said(self._vitals(), well=self._vitals().loop_turns)

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _said(self._vitals(), well=self._vitals().ready)

    async def _metrics(self, _request: web.Request) -> web.Response:
        text = self._expose(self._own) + self._expose(self._everything)
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _said(now: Vitals, *, well: bool) -> web.Response:
    return web.Response(status=200 if well else 503, body=msgspec.json.encode(now), content_type="application/json")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _name_of(authority: str) -> str:
    """Return the name in a `Host`, without its port, in lower case; an IPv6 address without its brackets."""
    name = authority.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name
