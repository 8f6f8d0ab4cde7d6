"""A fetch may be cancelled at any moment: what it has claimed by then, or is just claiming, is given back."""

from __future__ import annotations

import asyncio
import random

import pytest

from integration.samples import draft, fetch, holding
from ojs_engine.store.store import Store

pytestmark = pytest.mark.usefixtures("own_stores")


async def test_a_claim_in_flight_is_given_back(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    with holding(store.nats, store.config.job(pushed.id)) as claim:
        task = asyncio.create_task(fetch(store, queue, worker="gone"))
        await claim.met(task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    [again] = await fetch(other, queue, worker="w", wait_ms=60_000)
    assert (again.id, again.worker, again.attempt, again.uncharged) == (pushed.id, "w", 2, 1)


async def test_closing_waits_for_what_a_cancelled_fetch_claims(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    with holding(store.nats, store.config.job(pushed.id)) as claim:
        task = asyncio.create_task(fetch(store, queue))
        await claim.met(task)
        task.cancel()
        closing = asyncio.create_task(store.dispatcher.close())
        await asyncio.sleep(0)
    await closing
    assert [job.id for job in await fetch(other, queue)] == [pushed.id]


async def test_no_job_is_lost_at_whatever_moment_a_fetch_is_cancelled(store: Store, other: Store, queue: str) -> None:
    chance = random.Random(22)
    pushed = {(await store.enqueue.push(draft(queue=queue))).id for _ in range(40)}
    loop = asyncio.get_running_loop()
    taken: set[str] = set()
    for round_ in range(60):
        task = asyncio.create_task(fetch(store, queue, worker="w", count=1 + round_ % 3))
        loop.call_later(chance.random() * 0.003, task.cancel)
        try:
            taken |= {job.id for job in await task}
        except asyncio.CancelledError:
            pass
    while taken != pushed:
        found = await fetch(other, queue, count=10, wait_ms=60_000)
        assert found, pushed - taken
        taken |= {job.id for job in found}
    assert await fetch(other, queue) == []
