from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import nats
import pytest
from nats.aio.client import Client

from integration.conftest import OpenStore, SharedStores, opened_store
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE
from ojs_engine.store.store import Store
from ojs_features.all import FEATURES
from ojs_gateway.context import GatewayTimings
from ojs_gateway.openapi.document import places
from ojs_gateway.routes import parts
from ojs_gateway.server import Gateway
from ojs_runtime.settings import Settings
from support.nats import NatsServer


class Reply(NamedTuple):
    """What a gateway answered; `body` is the decoded JSON."""

    status: int
    body: Any
    headers: dict[str, str]


class Asker:
    """Asks as other languages do: by a subject, a body and headers."""

    def __init__(self, client: Client) -> None:
        self.nats = client

    async def __call__(self, subject: str, body: Any = None, parameters: dict[str, Any] | None = None, **headers: str) -> Reply:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if parameters is not None:
            sent["OJS-Parameters"] = urlencode(parameters)
        data = b"" if body is None else json.dumps(body).encode()
        message = await self.nats.request(f"ojs.api.{subject}", data, timeout=40, headers=sent or None)
        answered = message.headers or {}
        return Reply(int(answered["OJS-Status"]), json.loads(message.data), answered)


Serve = Callable[..., Awaitable[Gateway]]

STREAMED: Final = {
    "getMetrics",
    "streamJobProgress",
    "streamEvents",
    "subscribeJobEvents",
    "subscribeQueueEvents",
    "websocketConnect",
    "streamStats",
}
ROUTES: Final = {
    name: route
    for part in parts(FEATURES)
    for route in part.routes
    if (name := next(places(route)).operation_id) not in STREAMED
}
"""What can be asked over NATS, unless it is `http_only`."""


def new_job(queue: str, **more: Any) -> dict[str, Any]:
    return {"type": "email.send", "args": [1], "options": {"queue": queue}} | more


@pytest.fixture(scope="module")
def namespace() -> str:
    """The one that the subjects here are of."""
    return DEFAULT_NAMESPACE


@pytest.fixture
async def ask(shared_nats_server: NatsServer) -> AsyncIterator[Asker]:
    client = await nats.connect(shared_nats_server.url)
    yield Asker(client)
    await client.close()


@pytest.fixture(scope="module")
async def gateway(shared_stores: SharedStores) -> AsyncIterator[Gateway]:
    """One for all tests of a module that need nothing else of it."""
    store = await opened_store(shared_stores.url)
    gateway = Gateway(store, Settings(port=0, nats=shared_stores.url, test_mode=True), FEATURES)
    await gateway.start()
    yield gateway
    await gateway.stop()
    await store.close()


@pytest.fixture
async def serve(open_store: OpenStore, shared_nats_server: NatsServer) -> AsyncIterator[Serve]:
    """`await serve(url, max_connections=…)`: one more gateway, on the module's server unless told otherwise."""
    gateways: list[Gateway] = []

    async def one(url: str | None = None, timings: GatewayTimings = GatewayTimings(), **settings: Any) -> Gateway:
        address = url or shared_nats_server.url
        store: Store = await open_store(address)
        gateway = Gateway(store, Settings(port=0, nats=address, test_mode=True, **settings), FEATURES, timings)
        gateways.append(gateway)
        await gateway.start()
        return gateway

    yield one
    for gateway in gateways:
        await gateway.stop()
