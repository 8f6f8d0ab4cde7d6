"""A compare-and-swap that is refused again and again, as by a cluster that is electing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from integration.samples import acked, configure, draft, fetch, refusal
from ojs_core.domain.fair_pools import Pool
from ojs_core.domain.job import State
from ojs_core.store.records.writer import Conflict
from ojs_core.store.store import Store

Do = Callable[[Store, str], Awaitable[object]]


async def complete(store: Store, queue: str) -> None:
    [job] = await fetch(store, queue)
    store.jobs.cache.clear()
    assert (await store.jobs.change(job.id, acked)).after.state is State.COMPLETED


async def limit(store: Store, queue: str) -> None:
    await configure(store, queue, concurrency=5)


async def pool(store: Store, queue: str) -> None:
    await store.pools.put(Pool(name=queue, weights={queue: 1}))
    await store.pools.delete(queue)


class Stall:
    """What writes is told "conflict" until `seconds` have passed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Store, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self.until = loop.time() + seconds
        self.refused = 0
        for holder, name in ((store.committer, "commit"), (store._bucket.writer, "write")):
            write = getattr(holder, name)

            async def stalled(*arguments: Any, write: Any = write) -> Any:
                if loop.time() < self.until:
                    self.refused += 1
                    raise Conflict
                return await write(*arguments)

            monkeypatch.setattr(holder, name, stalled)


@pytest.mark.parametrize("do", [complete, limit, pool])
async def test_a_stall_is_outlasted(store: Store, queue: str, do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.jobs.push(draft(queue=queue))
    stall = Stall(monkeypatch, store, 0.4)
    await do(store, queue)
    assert stall.refused > 3, "so that there was something to outlast"


async def test_what_never_ends_is_given_up(store: Store, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = await store.jobs.push(draft(queue=queue))
    await fetch(store, queue)
    stall = Stall(monkeypatch, store, 3_600.0)
    with refusal("backend_unavailable"):
        await store.jobs.change(pushed.id, acked)
    assert stall.refused > 12
