from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ojs_engine.due.loop import DueLoop
from ojs_engine.store.store import Store
from ojs_features.limits.loop import blocked_jobs_loop


@pytest.fixture
def key(queue: str) -> str:
    return f"key:{queue}"


@pytest.fixture
async def keeper(other: Store) -> AsyncIterator[DueLoop]:
    """Lets jobs that were put aside go on."""
    keeper = blocked_jobs_loop(other)
    await keeper.start()
    yield keeper
    await keeper.stop()
