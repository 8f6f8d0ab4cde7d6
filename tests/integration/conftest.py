from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.errors import NotFoundError

from integration.samples import from_durables, from_heads
from ojs_engine.base.problems import Unreachable
from ojs_engine.domain.storage_room import RoomSettings
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, StoreConfig
from ojs_engine.store.store import Connect, Store, StoreFeatures, StoreTimings
from ojs_features.all import STORE_FEATURES
from support.cluster import NatsCluster
from support.nats import NatsServer
from support.outside import SteeredClock, TappedConnection, untouched
from support.waiting import eventually

OpenStore = Callable[..., Awaitable[Store]]
MakeServer = Callable[..., NatsServer]

_names = count(1)


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return f"queue-{next(_names)}"


@pytest.fixture(params=["head", "durable"])
def way(request: pytest.FixtureRequest) -> str:
    """How tokens are had: from the heads of their subjects, as of those that are asked for seldom, or from durables."""
    return str(request.param)


@pytest.fixture
def timings(request: pytest.FixtureRequest) -> StoreTimings:
    """The times of a test's stores; `samples.timed` gives it others."""
    if "way" not in request.fixturenames:
        return StoreTimings()
    return from_heads() if request.getfixturevalue("way") == "head" else from_durables()


async def opened_store(
    url: str,
    *,
    role: str = "gateway",
    replicas: int = 1,
    test_mode: bool = True,
    namespace: str = DEFAULT_NAMESPACE,
    timings: StoreTimings = StoreTimings(),
    connect: Connect = TappedConnection,
    room: RoomSettings | None = None,
    features: StoreFeatures = STORE_FEATURES,
) -> Store:
    """Open a store whose clock and connections a test can steer. A cluster may take its time."""
    config = StoreConfig(namespace=namespace, replicas=replicas)

    async def attempt() -> Store | None:
        try:
            return await Store.open(
                url,
                config,
                role=role,
                features=features,
                test_mode=test_mode,
                timings=timings,
                clock=SteeredClock(timings.workers),
                connect=connect,
                room=room,
            )
        except Unreachable:
            if replicas == 1:
                raise
            return None

    store = await eventually(attempt)
    assert store is not None
    return store


@pytest.fixture
async def open_store(timings: StoreTimings) -> AsyncIterator[OpenStore]:
    """`await open_store(url, …)` as `opened_store`, with the test's times unless told otherwise; all are closed at the end."""
    opened: list[Store] = []

    async def open_one(url: str, **options: Any) -> Store:
        store = await opened_store(url, **{"timings": timings} | options)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


class SharedStores:
    """The stores in a module's namespace, open until its last test has ended. Those with equal times are the same."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self.namespace = namespace
        self._opened: dict[tuple[StoreTimings, int], Store] = {}

    async def get(self, timings: StoreTimings, number: int) -> Store:
        """Return the first, second … store with these times."""
        found = self._opened.get((timings, number))
        if found is None:
            found = await opened_store(self.url, namespace=self.namespace, timings=timings)
            self._opened[timings, number] = found
        return found

    async def close(self) -> None:
        for store in self._opened.values():
            await store.close()


@pytest.fixture(scope="module")
async def shared_stores(shared_nats_server: NatsServer, namespace: str) -> AsyncIterator[SharedStores]:
    """The stores that `store` and `other` hand out."""
    stores = SharedStores(shared_nats_server.url, namespace)
    yield stores
    await stores.close()


@pytest.fixture(scope="module")
def namespace(shared_nats_server: NatsServer) -> Iterator[str]:
    """The module's namespace on the shared server, which is taken away after its tests."""
    with _named(f"module-{next(_names)}", shared_nats_server) as name:
        yield name


@pytest.fixture
def own_namespace(shared_nats_server: NatsServer) -> Iterator[str]:
    """A namespace on the shared server that no other test has: it costs a third of what a server does."""
    with _named(f"test-{next(_names)}", shared_nats_server) as name:
        yield name


@contextlib.contextmanager
def _named(name: str, server: NatsServer) -> Iterator[str]:
    yield name
    asyncio.run(_deleted(server.url, StoreConfig(namespace=name)))


async def _deleted(url: str, config: StoreConfig) -> None:
    client = await nats.connect(url)
    try:
        for stream in config.streams():
            with contextlib.suppress(NotFoundError):  # no test opened a store
                await client.jetstream().delete_stream(str(stream["name"]))
    finally:
        await client.close()


@pytest.fixture
def own_stores() -> None:
    """Give a test a `store` and an `other` that no test has after it: it closes parts of them, replaces parts, or has them
    live in other times.
    """


@pytest.fixture
async def find_store(
    request: pytest.FixtureRequest, shared_stores: SharedStores, open_store: OpenStore, timings: StoreTimings
) -> Callable[[int], Awaitable[Store]]:
    """`await find_store(2)`: the second store of a test."""
    if "own_stores" in request.fixturenames:
        return lambda _number: open_store(shared_stores.url, namespace=shared_stores.namespace)
    return lambda number: shared_stores.get(timings, number)


@pytest.fixture
async def store(find_store: Callable[[int], Awaitable[Store]]) -> AsyncIterator[Store]:
    """A store in the module's namespace. Its tests share it, and keep apart by job ids and queues of their own."""
    store = await find_store(1)
    yield store
    untouched(store)


@pytest.fixture
async def other(find_store: Callable[[int], Awaitable[Store]]) -> AsyncIterator[Store]:
    """A second process's store in the same namespace."""
    store = await find_store(2)
    yield store
    untouched(store)


@pytest.fixture(scope="session")
def nats_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    """Three servers, shared by all cluster tests: who stops one starts it again."""
    with NatsCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def own_server(tmp_path: Path) -> MakeServer:
    """A server that isn't started yet, with settings of its own: `own_server(more="…")`."""

    def make(**options: Any) -> NatsServer:
        return NatsServer(tmp_path / "own", **options)

    return make


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cluster: needs three nats-servers")
