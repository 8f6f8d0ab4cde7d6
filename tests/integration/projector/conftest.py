from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import OpenStore, SharedStores
from integration.samples import KINDS
from ojs_engine.store.store import Store, StoreTimings
from ojs_features.all import FOLLOWED
from ojs_projector.projector import Projector, ProjectorTimings
from support.outside import untouched
from support.waiting import PATIENCE_S

StartProjector = Callable[..., Awaitable[Projector]]


@pytest.fixture
def open_here(request: pytest.FixtureRequest, open_store: OpenStore) -> OpenStore:
    """`await open_here(role="scheduler")`: one more store in the module's namespace, the test's own or its `nats_server`."""
    if "nats_server" in request.fixturenames:
        return partial(open_store, request.getfixturevalue("nats_server").url)
    if "own_namespace" in request.fixturenames:
        server = request.getfixturevalue("shared_nats_server")
        return partial(open_store, server.url, namespace=request.getfixturevalue("own_namespace"))
    shared: SharedStores = request.getfixturevalue("shared_stores")
    return partial(open_store, shared.url, namespace=shared.namespace)


@pytest.fixture
async def store(request: pytest.FixtureRequest, open_here: OpenStore, timings: StoreTimings) -> AsyncIterator[Store]:
    """A gateway's store, and nothing in its bucket, all of which a projector sees. Tests share it as they do elsewhere."""
    if {"nats_server", "own_namespace", "own_stores"} & set(request.fixturenames):
        store = await open_here()
    else:
        store = await request.getfixturevalue("shared_stores").get(timings, 1)
        await store.reset(KINDS)
    yield store
    untouched(store)


@pytest.fixture
def projector_timings() -> ProjectorTimings:
    """The times of a test's projectors, which are as patient as who asks them; it may be parametrized with others."""
    return ProjectorTimings(wait_s=PATIENCE_S)


@pytest.fixture
async def start_projector(
    open_here: OpenStore, tmp_path: Path, projector_timings: ProjectorTimings
) -> AsyncIterator[StartProjector]:
    """`await start_projector()`: one more projector, with its index in the test's folder; all are stopped at the end."""
    started: list[Projector] = []

    async def start(*, in_memory: bool = False, dead_letters: int = 10_000, **opened: Any) -> Projector:
        store = await open_here(role="projector", **opened)
        folder = None if in_memory else tmp_path / "index"
        projector = Projector(store, folder, dead_letters=dead_letters, features=FOLLOWED, timings=projector_timings)
        started.append(projector)
        await projector.start()
        return projector

    yield start
    for projector in started:
        await projector.stop()


@pytest.fixture
async def projector(start_projector: StartProjector) -> Projector:
    """One with its index in memory, which costs a tenth of a second less than one on a disk."""
    return await start_projector(in_memory=True)
