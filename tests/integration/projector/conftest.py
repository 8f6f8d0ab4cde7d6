from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import OpenStore
from ojs_core.store.store import Store
from ojs_projector.projector import Projector, ProjectorTimings
from support.nats import NatsServer

StartProjector = Callable[..., Awaitable[Projector]]


@pytest.fixture
async def store(nats_server: NatsServer, open_store: OpenStore) -> Store:
    """A gateway's store on a server of the test's own: a projector sees all that is in a bucket."""
    return await open_store(nats_server.url)


@pytest.fixture
def projector_timings() -> ProjectorTimings:
    """The times of a test's projectors; it may be parametrized with others."""
    return ProjectorTimings()


@pytest.fixture
async def start_projector(
    nats_server: NatsServer, open_store: OpenStore, tmp_path: Path, projector_timings: ProjectorTimings
) -> AsyncIterator[StartProjector]:
    """`await start_projector()`: one more projector, with its index in the test's folder; all are stopped at the end."""
    started: list[Projector] = []

    async def start(*, in_memory: bool = False, dead_letters: int = 10_000, **opened: Any) -> Projector:
        store = await open_store(nats_server.url, role="projector", **opened)
        folder = None if in_memory else tmp_path / "index"
        projector = Projector(store, folder, dead_letters=dead_letters, timings=projector_timings)
        started.append(projector)
        await projector.start()
        return projector

    yield start
    for projector in started:
        await projector.stop()


@pytest.fixture
async def projector(start_projector: StartProjector) -> Projector:
    return await start_projector()
