"""One gateway process: its handlers behind its HTTP server and over NATS, from start to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.jetstream.inboxes import Inboxes
from ojs_core.runtime.browsers import Browsers
from ojs_core.runtime.connections import Connections
from ojs_core.runtime.listen import Listener
from ojs_gateway.context import Context
from ojs_gateway.http.edge import Edge, server
from ojs_gateway.nats_api.service import NatsApi
from ojs_gateway.routes import bound, operations, router

if TYPE_CHECKING:
    from ojs_core.runtime.middleware import EnqueueChain
    from ojs_core.runtime.settings import Settings
    from ojs_core.store.store import Store

_SHUTDOWN_S: Final = 1.8
"""What a running request has to finish, and again what it has after it was told to give up."""

_FAREWELL_S: Final = 0.6
"""How long, at most, open connections may bring one more request, which is answered as their last. Closed at once, they would
cut off clients that ask again and again."""


class Gateway:
    """The API over one store, by HTTP and NATS. `chain` is frozen when it starts; add to it before."""

    def __init__(self, store: Store, settings: Settings, chain: EnqueueChain) -> None:
        self.chain = chain
        self._settings = settings
        limits = PayloadLimits(
            max_body_bytes=settings.max_body_bytes,
            max_envelope_bytes=settings.max_envelope_bytes,
            default_wait_ms=settings.default_wait_ms,
        )
        self._context = Context(
            store,
            limits,
            chain,
            test_mode=settings.test_mode,
            unconfirmed_bulk=settings.unconfirmed_bulk,
            max_subscriptions=settings.max_subscriptions,
            webhook_insecure=settings.webhook_insecure,
            webhook_private=settings.webhook_private,
            nats_api=settings.nats_api,
        )
        browsers = Browsers(settings.host, settings.allowed_hosts, settings.allowed_origins)
        routes = list(bound(self._context))
        self._edge = Edge(router(routes), limits, browsers, self._context.aside)
        self._nats_api: NatsApi | None = None
        if settings.nats_api:
            inboxes = Inboxes(settings.inbox_prefixes)
            self._nats_api = NatsApi(
                operations(routes), store.config, limits, self._context.aside, inboxes, most=settings.max_connections
            )
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        """Base URL with the real port, once started."""
        assert self._listener is not None, "the gateway hasn't started"
        return self._listener.url

    async def start(self) -> None:
        """Listen. Raises StartupProblem if the address can't be had, or NATS not reached."""
        self.chain.freeze()
        settings = self._settings
        connections = Connections(
            settings.max_connections, settings.max_connections_per_address, settings.header_timeout, settings.idle_timeout
        )
        bare = server(self._edge, self._context.limits, connections)
        self._listener = Listener(
            bare, settings.host, settings.port, shares_port=settings.processes > 1, shutdown_timeout=_SHUTDOWN_S
        )
        await self._listener.start()
        if self._nats_api is not None:
            await self._nats_api.start(settings.nats_for_answers, self._context.store.instance)
        self._context.roles.start()
        self._context.damage.start()

    async def stop(self) -> None:
        """Take no new connections, answer those who wait at once, let the others finish; all within 4.2 s."""
        self._edge.closing = True
        self._context.stop_waiting()
        closing: list[Awaitable[None]] = []
        if self._listener is not None:
            closing.append(self._listener.stop(_FAREWELL_S))
        if self._nats_api is not None:
            closing.append(self._nats_api.stop(_SHUTDOWN_S))
        await asyncio.gather(*closing)
        await self._context.roles.stop()
        await self._context.damage.stop()
        await self._context.worker_notes.stop()
        await self._context.targets.close()
        self._context.aside.close()
