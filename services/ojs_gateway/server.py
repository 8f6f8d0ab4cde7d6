"""One gateway process: its handlers behind its HTTP server and over NATS, from start to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import structlog

from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.problems import StartupProblem
from ojs_engine.jetstream.inboxes import Inboxes
from ojs_gateway.context import Context, GatewayTimings
from ojs_gateway.http.door import Door as RequestDoor
from ojs_gateway.http.door import Keyless
from ojs_gateway.http.edge import Edge, server
from ojs_gateway.http.request import Site
from ojs_gateway.http.request_log import request_log
from ojs_gateway.nats_api.service import NatsApi
from ojs_gateway.pages import REMEDY, Pages
from ojs_gateway.routes import bound, operations, router
from ojs_runtime.addresses import is_loopback
from ojs_runtime.browsers import Browsers
from ojs_runtime.connections import Connections
from ojs_runtime.doors import Door
from ojs_runtime.listen import Listener
from ojs_runtime.proxies import Proxies
from ojs_runtime.proxy_header import ProxyHeaders

if TYPE_CHECKING:
    from ojs_engine.api.call import Call
    from ojs_engine.api.witness import Witness
    from ojs_engine.base.errors import OjsError
    from ojs_engine.store.store import Store
    from ojs_features.plug import Feature
    from ojs_gateway.http.endpoint import Endpoint
    from ojs_runtime.settings import NatsApiMode, Settings

log = structlog.get_logger(__name__)

_OVER_NATS: Final[dict[NatsApiMode, Keyless]] = {
    "auto": "while there are no keys",
    "open": "always",
    "keys": "never",
    "off": "never",
}


class Gateway:
    """The API over one store, by HTTP and NATS."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        features: tuple[Feature, ...],
        timings: GatewayTimings = GatewayTimings(),
        aside: LargeBodies | None = None,
    ) -> None:
        """`timings` and `aside` (which does the work on large bodies) are for tests."""
        self._settings = settings
        limits = PayloadLimits(
            max_body_bytes=settings.max_body_bytes,
            max_envelope_bytes=settings.max_envelope_bytes,
            default_wait_ms=settings.default_wait_ms,
            strict=settings.strict,
        )
        self._loops = [make(store) for feature in features for make in feature.gateway_loops]
        self._witnesses = [feature.witness.make(store) for feature in features if feature.witness is not None]
        self._context = Context(
            store,
            limits,
            settings,
            features,
            witnesses=self._witnesses,
            timings=timings,
            aside=aside,
        )
        guard = self._guard = self._context.guard
        beyond = not (is_loopback(settings.host) or settings.insecure)
        over_http: Keyless = "never" if beyond else "while there are no keys"
        self._http_door = RequestDoor(guard.callers, over_http, guard.pause, self._refused)
        self._nats_door = RequestDoor(guard.callers, _OVER_NATS[settings.nats_api], guard.pause, self._refused)
        browsers = Browsers(settings.host, settings.allowed_hosts, settings.allowed_origins)
        routes = list(bound(self._context))
        site = Site(settings.namespace, settings.path_prefix)
        found = router(routes, site.prefix)
        self._dashboard: str | None = None
        if settings.dashboard:
            pages = Pages(prefix=site.prefix)
            for path, endpoint in pages.endpoints():
                found.add("GET", path, endpoint)
            if pages.there:
                self._dashboard = f"{site.prefix}/"
            else:
                log.warning("the dashboard is missing", reason=REMEDY)
        log_request = request_log(settings.request_log)
        self._proxies = Proxies(settings.trusted_proxies, settings.forwarded_by)
        self._edge = Edge(
            found,
            limits,
            browsers,
            self._http_door,
            self._context.aside,
            log_request,
            site,
            self._proxies,
            self._context.extensions,
            timings.body_s,
        )
        self._nats_api: NatsApi | None = None
        if settings.nats_api != "off":
            self._nats_api = NatsApi(
                operations(routes),
                store.config,
                self._nats_door,
                limits,
                self._context.aside,
                Inboxes(),
                self._context.extensions,
                most=settings.max_connections,
            )
        self._listener: Listener | None = None

    def tell_readiness(self, draining: Callable[[], bool]) -> None:
        """Answer `/readyz` with 503, and each request as the last of its connection, as soon as `draining` says so."""
        self._context.draining = self._edge.closing = draining

    @property
    def url(self) -> str:
        """Base URL with the real port, once started."""
        assert self._listener is not None, "the gateway hasn't started"
        return self._listener.url

    @property
    def dashboard(self) -> str | None:
        """The dashboard's address, once started; None if there is no dashboard."""
        return None if self._dashboard is None else f"{self.url}{self._dashboard}"

    def _look_at_doors(self) -> None:
        self._http_door.look()
        self._nats_door.look()

    def _refused(self, call: Call, endpoint: Endpoint, error: OjsError) -> None:
        for witness in self._witnesses:
            witness.refused(call, endpoint, error)

    async def start(self) -> None:
        """Listen. Raises StartupProblem if the address can't be had, a certificate not used, or NATS not reached."""
        settings = self._settings
        _require_witness(settings, self._witnesses)
        await self._guard.start(self._look_at_doors)
        for witness in self._witnesses:
            witness.start()
        connections = Connections(
            settings.max_connections,
            settings.max_connections_per_address,
            settings.idle_timeout,
            self._context.timings.connections,
            self._proxies.trusts,
        )
        bare = server(self._edge, self._context.limits, connections)
        self._listener = Listener(
            bare,
            settings.host,
            settings.port,
            shares_port=settings.processes > 1,
            door=_door(settings, connections, self._witnesses, self._proxies),
            shutdown_timeout=self._context.timings.shutdown_s,
        )
        await self._listener.start()
        if self._nats_api is not None:
            await self._nats_api.start(settings.nats_for_answers, self._context.store.instance)
            self._context.store.needs(self._nats_api.nats)
        self._context.roles.start()
        self._context.damage.start()
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        """Take no new connections, answer those who wait at once, let the others finish; all within 4.2 s."""
        # First of all: whoever is told that its connection ends makes a new one at once, and is to be refused, not cut off.
        if self._listener is not None:
            await self._listener.close_port()
        self._edge.closing = lambda: True
        self._context.stop_waiting()
        closing: list[Awaitable[None]] = []
        if self._listener is not None:
            closing.append(self._listener.stop(self._context.timings.farewell_s))
        if self._nats_api is not None:
            closing.append(self._nats_api.stop(self._context.timings.shutdown_s))
        await asyncio.gather(*closing)
        await self._guard.stop()
        for witness in self._witnesses:
            await witness.stop()
        await self._context.roles.stop()
        await self._context.damage.stop()
        for loop in self._loops:
            await loop.stop()
        for close in self._context.at_stop:
            await close()
        self._context.aside.close()


def _require_witness(settings: Settings, witnesses: Sequence[Witness]) -> None:
    """Say that nothing writes down who does what. Raises StartupProblem where a setting asks for it."""
    if witnesses:
        return
    if settings.audit_days:
        raise StartupProblem(
            "audit_days says how long the audit is kept, and this server was installed without the audit: "
            "leave the setting out, or install the audit."
        )
    log.warning("nothing writes down who does what: this server was installed without the audit")


def _door(settings: Settings, connections: Connections, witnesses: Sequence[Witness], proxies: Proxies) -> Door | None:
    """Return what comes before requests: balancers' headers, TLS, or None for neither. Raises StartupProblem."""
    headers = ProxyHeaders(proxies.trusts) if settings.proxy_protocol else None
    if settings.tls_cert is None or settings.tls_key is None:
        return None if headers is None else Door(connections, headers)
    from ojs_runtime.certificates import Certificates, TlsFiles  # noqa: PLC0415  # takes a library that is for TLS alone
    from ojs_runtime.tls import FailedHandshake, FailedHandshakes, TlsDoor  # noqa: PLC0415

    certificates = Certificates(TlsFiles(settings.tls_cert, settings.tls_key, settings.client_ca))
    counted = FailedHandshakes()

    def failed(handshake: FailedHandshake) -> None:
        counted.note(handshake)
        for witness in witnesses:
            witness.no_connection(handshake.address, handshake.reason)

    return TlsDoor(certificates, connections, failed, headers)
