"""What a queue's settings do to its jobs, and what a gateway does that can't know them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.projector.samples import dead
from integration.samples import acked, configure, draft, failed, fetch, message, refusal, unreachable
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Retention, Retry
from ojs_engine.domain.queues.config import DEFAULT_QUEUE
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.jetstream.connection import Failed
from ojs_engine.store.store import Store
from support.outside import collecting
from support.waiting import eventually

KEPT = Retention(completed_s=4_000, cancelled_s=5_000, discarded_s=6_000, dead_letter_s=7_000)


@pytest.mark.parametrize(
    ("end", "seconds"),
    [(acked, 4_000), (transitions.cancel, 5_000), (failed, 6_000), (dead, 7_000)],
)
async def test_a_finished_job_leaves_when_its_queue_said(
    store: Store, queue: str, end: Callable[[Job, Moment], Transition], seconds: int
) -> None:
    await configure(store, queue, retention=KEPT)
    await store.enqueue.push(draft(queue=queue, retry=Retry(max_attempts=1, on_exhaustion="discard")))
    (job,) = await fetch(store, queue)
    await configure(store, queue, retention=Retention(completed_s=9_999))  # changes nothing for jobs that are there
    await store.jobs.change(job.id, end)
    record = await message(store, store.config.job(job.id))
    assert record is not None
    assert record[1]["Nats-TTL"] == f"{seconds}s"


async def test_every_end_has_its_time_from_the_highest_layer_that_names_it(store: Store, queue: str) -> None:
    await configure(store, DEFAULT_QUEUE, retention=KEPT)
    try:
        await configure(store, queue, retention=Retention(completed_s=8_000))
        job = await store.enqueue.push(draft(queue=queue))
        assert job.retention == Retention(completed_s=8_000, cancelled_s=5_000, discarded_s=6_000, dead_letter_s=7_000)
    finally:
        await configure(store, DEFAULT_QUEUE)


async def test_a_gateway_whose_knowledge_is_old_asks_the_leader_and_fails_closed(
    store: Store, other: Store, queue: str
) -> None:
    await store.enqueue.push(draft(queue=queue))
    assert await other.queues.held(queue) is False
    assert await fetch(other, f"{queue}.other") == []

    async def unanswered(*_: object) -> Failed:
        return Failed("NATS did not answer in time", sent=True)

    async def is_held() -> bool:
        return await other.queues.held(queue)

    async def is_free() -> bool:
        return not await other.queues.held(queue)

    with collecting(other.nats, unanswered), unreachable(other.nats, "$JS.API.CONSUMER.CREATE.", times=1_000_000):
        await store.queues.pause(queue)
        await eventually(is_held)
        assert await fetch(other, queue) == []
        await store.queues.resume(queue)
        await eventually(is_free)
        with unreachable(other.nats, "$JS.API.", times=1_000_000), refusal("backend_unavailable"):
            await fetch(other, queue)
