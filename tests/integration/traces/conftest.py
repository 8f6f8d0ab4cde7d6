from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import pytest

from integration.conftest import opened_store
from integration.samples import KINDS, from_heads
from integration.traces.operations import fetch_pooled, push_plain, queue_pause, schema
from ojs_command.services import SERVICES
from ojs_engine.store.store import Store, StoreTimings
from ojs_features.all import FEATURES
from ojs_features.webhooks.startup import INSECURE, PRIVATE
from ojs_gateway.server import Gateway
from ojs_runtime.settings import Settings
from support.nats import NatsServer
from support.traces import Tape, Trace

_HEADS: Final = from_heads()
_SERVICES: Final = {entry.name: entry for entry in SERVICES}


class Bench:
    """A gateway in the test's process, and services beside it. Each trace begins with an empty namespace."""

    def __init__(self, url: str, namespace: str, *, timings: StoreTimings = _HEADS, key: str | None = None) -> None:
        self._timings = timings
        self._key = key
        self.url = url
        self.namespace = namespace
        self.tape = Tape(namespace)
        self.stores: list[Store] = []
        self._gateway: Gateway | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Have the gateway run."""
        async with self._store("gateway") as store:
            self._gateway = Gateway(store, self._settings, FEATURES)
            await self._gateway.start()
            try:
                await self._warm()
                yield
            finally:
                await self._gateway.stop()

    @asynccontextmanager
    async def traced(self, *services: str) -> AsyncIterator[Trace]:
        """Yield a trace of what is asked next, with these services running."""
        assert self._gateway is not None
        await self.stores[0].reset(KINDS)
        async with AsyncExitStack() as stack:
            for name in services:
                await stack.enter_async_context(self._service(name))
            yield self._trace()

    @property
    def _settings(self) -> Settings:
        return Settings(
            port=0,
            nats=self.url,
            test_mode=True,
            nats_api="off",
            features={INSECURE: True, PRIVATE: True},
            api_key=self._key,
        )

    def _trace(self) -> Trace:
        assert self._gateway is not None
        self.tape.begin()
        trace = Trace(self._gateway.url, self.tape, self.stores)
        trace.key = self._key
        return trace

    async def _warm(self) -> None:
        """Have the gateway hear of what it follows from its first request on, and store the first event."""
        trace = self._trace()
        await push_plain(trace)
        await fetch_pooled(trace)
        await schema(trace)
        await queue_pause(trace)

    @asynccontextmanager
    async def _service(self, name: str) -> AsyncIterator[None]:
        async with self._store(name) as store:
            service = _SERVICES[name].load()(store, self._settings)
            await service.start()
            try:
                yield
            finally:
                await service.stop()

    @asynccontextmanager
    async def _store(self, role: str) -> AsyncIterator[Store]:
        store = await opened_store(
            self.url, role=role, namespace=self.namespace, timings=self._timings, connect=self.tape.connector(role)
        )
        self.stores.append(store)
        try:
            yield store
        finally:
            self.stores.remove(store)
            await store.close()


@pytest.fixture(scope="module")
async def bench(shared_nats_server: NatsServer, namespace: str) -> AsyncIterator[Bench]:
    """The one of all operations that need nothing else of it."""
    bench = Bench(shared_nats_server.url, namespace)
    async with bench.serving():
        yield bench
