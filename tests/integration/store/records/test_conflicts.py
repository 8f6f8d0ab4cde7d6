"""A compare-and-swap that is refused again and again, as by a cluster that is electing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf

import pytest

from integration.samples import acked, configure, draft, fetch, refusal, timed
from ojs_engine.domain.job import State
from ojs_engine.jetstream.connection import Reply, ReplyOrFailure
from ojs_engine.store.records.write_timings import WriteTimings
from ojs_engine.store.store import Store
from ojs_features.pools.rules import Pool
from ojs_features.pools.store import Pools
from support.outside import Send, tapped

Do = Callable[[Store, str], Awaitable[object]]


async def complete(store: Store, queue: str) -> None:
    [job] = await fetch(store, queue)
    store.jobs.cache.clear()
    assert (await store.jobs.change(job.id, acked)).after.state is State.COMPLETED


async def limit(store: Store, queue: str) -> None:
    await configure(store, queue, concurrency=5)


async def pool(store: Store, queue: str) -> None:
    await store.of(Pools).put(Pool(name=queue, weights={queue: 1}))
    await store.of(Pools).delete(queue)


class Stall:
    """Whoever writes a record is told that another write was faster, so many times."""

    def __init__(self, times: float) -> None:
        self._times = times
        self.refused = 0

    def __call__(self, _send: Send, subject: str, *_: object) -> Awaitable[ReplyOrFailure] | None:
        if not subject.startswith("$KV.") or self.refused >= self._times:
            return None
        self.refused += 1
        return self._overtaken()

    async def _overtaken(self) -> Reply:
        return Reply(b"", b"", b'{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"}}', None)


@pytest.mark.parametrize("do", [complete, limit, pool])
async def test_a_stall_is_outlasted(store: Store, queue: str, do: Do) -> None:
    await store.enqueue.push(draft(queue=queue))
    stall = Stall(6)
    with tapped(store.nats, stall):
        await do(store, queue)
    assert stall.refused == 6, "so that there was something to outlast"


@timed(writes=WriteTimings(budget_s=0.5))
async def test_what_never_ends_is_given_up(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    stall = Stall(inf)
    with tapped(store.nats, stall), refusal("backend_unavailable"):
        await store.jobs.change(pushed.id, acked)
    assert stall.refused > 0
