from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import aiohttp
import pytest
from msgspec.structs import replace

from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.store.store import Store
from ojs_features.all import FEATURES
from ojs_gateway.context import GatewayTimings
from ojs_gateway.server import Gateway
from ojs_runtime.settings import Settings
from support.fake_store import FakeStore

Start = Callable[..., Awaitable[aiohttp.ClientSession]]


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def timings() -> GatewayTimings:
    return GatewayTimings()


@pytest.fixture
def aside() -> LargeBodies:
    """Where a gateway works on large bodies; a test that keeps it busy lets it go."""
    return LargeBodies()


@pytest.fixture
async def start(store: FakeStore, timings: GatewayTimings, aside: LargeBodies) -> AsyncIterator[Start]:
    """Start a gateway with these settings, and a time for heads of requests; returns a client of it."""
    gateways: list[Gateway] = []
    clients: list[aiohttp.ClientSession] = []

    async def started(*, header_s: float = timings.connections.header_s, **settings: Any) -> aiohttp.ClientSession:
        its_own = replace(timings, connections=replace(timings.connections, header_s=header_s))
        gateway = Gateway(cast("Store", store), Settings(port=0, nats_api="off", **settings), FEATURES, its_own, aside)
        gateways.append(gateway)
        await gateway.start()
        clients.append(aiohttp.ClientSession(gateway.url))
        return clients[-1]

    yield started
    for client in clients:
        await client.close()
    for gateway in gateways:
        await gateway.stop()


@pytest.fixture
async def http(start: Start) -> aiohttp.ClientSession:
    """A client of a gateway with the default settings."""
    return await start()
