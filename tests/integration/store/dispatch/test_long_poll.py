"""Waiting fetches: woken by what arrives, and looking by themselves should a wake be lost."""

from __future__ import annotations

import asyncio

import pytest

from integration.samples import draft, failed, fetch, requeued, timed
from ojs_engine.domain import transitions
from ojs_engine.domain.transitions import Liveness
from ojs_engine.due.timekeeping import Timekeeper
from ojs_engine.jetstream.connection import Collected, Failed
from ojs_engine.store.dispatch.queue_consumers import ConsumerTimings
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.dispatch.wakeups import WakeupTimings
from ojs_engine.store.store import Store, StoreTimings
from support.outside import EMPTY, Collect, collecting, tapped_connection
from support.waiting import eventually

pytestmark = pytest.mark.usefixtures("own_stores")

WAIT_MS = 600_000
"""Longer than any test is waited for."""
NEVER = 3_600.0


only_wakes = timed(dispatch=DispatchTimings(fallback_look_s=NEVER))
"""Nobody looks again unless woken, so what is answered was answered because of a wake."""


def waiting(store: Store, queue: str) -> bool:
    """Whether all fetchers of the queue have looked and wait."""
    watched = store.dispatcher.wakeups._queues.get(queue)
    return watched is not None and watched.stop is not None and bool(watched.waiters)


async def parked(store: Store, queue: str, number: int = 1) -> list[asyncio.Task[list[object]]]:
    """Fetchers that have found nothing and wait."""
    looks = 0
    look = store.dispatcher.scans.scan

    async def counted(*arguments: object, **options: object) -> object:
        nonlocal looks
        found = await look(*arguments, **options)  # type: ignore[arg-type]
        looks += 1
        return found

    store.dispatcher.scans.scan = counted  # type: ignore[method-assign,assignment]
    tasks = [asyncio.create_task(fetch(store, queue, wait_ms=WAIT_MS)) for _ in range(number)]
    await eventually(lambda: looks == number and waiting(store, queue))
    store.dispatcher.scans.scan = look  # type: ignore[method-assign]
    return tasks  # type: ignore[return-value]


@only_wakes
async def test_a_push_wakes_a_fetcher_of_another_process(store: Store, other: Store, queue: str) -> None:
    [waiter] = await parked(other, queue)
    pushed = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await asyncio.wait_for(waiter, 60.0)] == [pushed.id]  # type: ignore[attr-defined]


@only_wakes
async def test_word_of_a_free_permit_wakes_a_fetcher_and_is_not_taken_for_a_token(
    store: Store, other: Store, queue: str
) -> None:
    [waiter] = await parked(other, queue)
    looked = asyncio.Event()
    look = other.dispatcher.scans.scan

    async def told(*arguments: object, **options: object) -> object:
        looked.set()
        return await look(*arguments, **options)  # type: ignore[arg-type]

    other.dispatcher.scans.scan = told  # type: ignore[method-assign,assignment]
    store.nats.publish(store.config.wake_for_room(queue), b"")
    await asyncio.wait_for(looked.wait(), 60.0)
    pushed = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await asyncio.wait_for(waiter, 60.0)] == [pushed.id]  # type: ignore[attr-defined]


@only_wakes
async def test_each_of_many_waiters_is_woken_for_a_job(store: Store, other: Store, queue: str) -> None:
    waiters = await parked(store, queue, 8)
    pushed = [(await other.enqueue.push(draft(queue=queue))).id for _ in range(8)]
    found = await asyncio.wait_for(asyncio.gather(*waiters), 60.0)
    assert sorted(job.id for jobs in found for job in jobs) == sorted(pushed)  # type: ignore[attr-defined]


@only_wakes
async def test_a_requeue_wakes_a_waiting_fetcher(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    [waiter] = await parked(other, queue)
    await store.jobs.change(pushed.id, requeued)
    assert [job.id for job in await asyncio.wait_for(waiter, 60.0)] == [pushed.id]  # type: ignore[attr-defined]


@only_wakes
async def test_a_due_retry_wakes_a_waiting_fetcher(store: Store, other: Store, queue: str) -> None:
    async def unasked(_worker: str, _now: int) -> Liveness:
        raise AssertionError("a retry has no holder")

    scheduler = Timekeeper(other, "scheduler", unasked)
    await scheduler.start()
    try:
        [waiter] = await parked(store, queue)
        pushed = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + 400))
        assert [job.id for job in await asyncio.wait_for(waiter, 60.0)] == [pushed.id]  # type: ignore[attr-defined]
    finally:
        await scheduler.stop()


@only_wakes
async def test_one_fetcher_waits_for_several_queues(store: Store, queue: str) -> None:
    names = [f"{queue}.{letter}" for letter in "abc"]
    task = asyncio.create_task(fetch(store, *names, wait_ms=WAIT_MS))
    await eventually(lambda: all(waiting(store, name) for name in names))
    pushed = await store.enqueue.push(draft(queue=names[2]))
    assert [job.id for job in await asyncio.wait_for(task, 60.0)] == [pushed.id]


@only_wakes
async def test_a_waiter_that_leaves_passes_its_wake_on(store: Store, queue: str) -> None:
    first = await store.dispatcher.wakeups.join([queue])
    second = await store.dispatcher.wakeups.join([queue])
    first.wake(store.dispatcher.wakeups._queues[queue])
    await store.dispatcher.wakeups.leave(first)
    assert second.woken
    await store.dispatcher.wakeups.leave(second)


@only_wakes
async def test_a_waiter_that_was_served_by_another_queue_passes_its_wake_on(store: Store, queue: str) -> None:
    first = await store.dispatcher.wakeups.join([f"{queue}.other", queue])
    second = await store.dispatcher.wakeups.join([queue])
    watched = store.dispatcher.wakeups._queues[queue]
    first.wake(watched)
    first.clear()  # and it looks, and finds what it wants elsewhere
    watched.ready.arrived(store.config.ready(queue, 0), asyncio.get_running_loop().time())
    await store.dispatcher.wakeups.leave(first)
    assert second.woken
    await store.dispatcher.wakeups.leave(second)


@timed(dispatch=DispatchTimings(fallback_look_s=0.2, wakeups=WakeupTimings(sure_s=1.0)))
async def test_a_lost_wake_is_made_up_for_by_a_look(store: Store, queue: str) -> None:
    [waiter] = await parked(store, queue)
    tapped_connection(store.nats).deaf = True
    pushed = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await asyncio.wait_for(waiter, 60.0)] == [pushed.id]  # type: ignore[attr-defined]


async def test_a_fetch_that_finds_nothing_ends_when_its_time_is_up(store: Store, queue: str) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await fetch(store, queue, wait_ms=300) == []
    assert loop.time() - began > 0.29


@only_wakes
async def test_closing_answers_those_who_wait(store: Store, queue: str) -> None:
    waiters = await parked(store, queue, 3)
    store.dispatcher.wakeups.wake_all()
    assert await asyncio.wait_for(asyncio.gather(*waiters), 60.0) == [[], [], []]
    assert await asyncio.wait_for(fetch(store, queue, wait_ms=WAIT_MS), 60.0) == [], "and those who come later"


async def test_a_fetcher_that_is_cancelled_leaves_no_waiter(store: Store, queue: str) -> None:
    [waiter] = await parked(store, queue)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    assert not waiting(store, queue)


@timed(dispatch=DispatchTimings(wakeups=WakeupTimings(linger_s=0.0)))
async def test_a_queue_that_is_waited_for_again_is_listened_to_and_the_idle_ones_leave(store: Store, queue: str) -> None:
    names = [f"{queue}.{number}" for number in range(50)]
    await fetch(store, *names, wait_ms=1)
    waiting_for = asyncio.create_task(fetch(store, names[0], wait_ms=WAIT_MS))
    await eventually(lambda: waiting(store, names[0]))
    await fetch(store, f"{queue}.next", wait_ms=1)
    wakeups = store.dispatcher.wakeups
    assert [name for name in names if name in wakeups._queues] == names[:1]
    job = await store.enqueue.push(draft(queue=names[0]))
    assert [found.id for found in await waiting_for] == [job.id]


@timed(dispatch=DispatchTimings(wakeups=WakeupTimings(linger_s=0.0)))
async def test_an_idle_queue_is_not_listened_to_for_ever(store: Store, queue: str) -> None:
    await fetch(store, queue, wait_ms=1)
    await fetch(store, f"{queue}.next", wait_ms=1)
    assert queue not in store.dispatcher.wakeups._queues


async def test_a_failed_job_is_not_seen_before_its_back_off(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    await store.jobs.change(pushed.id, failed)
    assert await fetch(store, queue, wait_ms=100) == []


# What needn't be asked


@pytest.fixture
def asked(store: Store) -> list[str]:
    """The queues whose tokens the stream is asked about, one for each time."""
    queues: list[str] = []
    stream = store.dispatcher.stream
    subjects = stream.subjects

    async def counted(queue: str) -> dict[str, int]:
        queues.append(queue)
        return await subjects(queue)

    stream.subjects = counted  # type: ignore[method-assign]
    return queues


async def test_a_busy_queue_is_asked_about_once(store: Store, other: Store, queue: str, asked: list[str]) -> None:
    for one in (store, other, store, other):
        pushed = await one.enqueue.push(draft(queue=queue, priority=3))
        assert [job.id for job in await fetch(store, queue, wait_ms=WAIT_MS)] == [pushed.id]
    assert asked == [queue]


async def test_priorities_hold_among_what_was_pushed_before_the_fetch(store: Store, queue: str, asked: list[str]) -> None:
    assert await fetch(store, queue) == []
    for _ in range(20):
        jobs = [await store.enqueue.push(draft(queue=queue, priority=priority)) for priority in (-1, 0, 7)]
        assert [(await fetch(store, queue))[0].id for _ in jobs] == [job.id for job in reversed(jobs)]
    assert len(asked) < 10, "of 61 fetches; again now and then, where a machine takes long for them"


async def test_a_priority_whose_token_can_not_be_pulled_yet_is_not_passed_over(store: Store, queue: str) -> None:
    assert await fetch(store, queue) == []
    pushed = [await store.enqueue.push(draft(queue=queue, priority=priority)) for priority in (0, 7)]
    early = [store.config.ready(queue, 7).encode()]

    async def ahead(collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        if early and early[0] in payload:
            early.clear()
            return EMPTY
        return await collect(subject, payload, wanted, timeout_s)

    with collecting(store.bulk, ahead):
        found = [job.id for _ in pushed for job in await fetch(store, queue)]
    assert found == [job.id for job in reversed(pushed)]
    assert not early


@timed(dispatch=DispatchTimings(consumers=ConsumerTimings(busy_pulls=0)))
async def test_a_consumer_that_has_lost_count_hands_out_its_last_token(store: Store, queue: str) -> None:
    """nats-server answers a pull that doesn't wait by its count, and looks for one that does."""
    (first,) = [await store.enqueue.push(draft(queue=queue))]
    assert [job.id for job in await fetch(store, queue)] == [first.id]
    hidden = 0

    async def short_by_one(collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        nonlocal hidden
        if "CONSUMER.MSG.NEXT" in subject and b"expires" not in payload:
            hidden += 1
            return EMPTY
        return await collect(subject, payload, wanted, timeout_s)

    with collecting(store.bulk, short_by_one):
        pushed = await store.enqueue.push(draft(queue=queue))
        assert [job.id for job in await fetch(store, queue, wait_ms=WAIT_MS)] == [pushed.id]
    assert hidden


async def test_as_many_fetches_as_there_are_jobs_get_one_each(store: Store, queue: str) -> None:
    pushed = {(await store.enqueue.push(draft(queue=queue))).id for _ in range(200)}
    numbers = iter(range(200))

    async def worker() -> list[str]:
        return [job.id for _ in numbers for job in await fetch(store, queue, wait_ms=WAIT_MS)]

    found = await asyncio.gather(*(worker() for _ in range(16)))
    assert sorted(job_id for ids in found for job_id in ids) == sorted(pushed)


async def test_what_was_cancelled_does_not_hide_what_is_behind_it(store: Store, queue: str) -> None:
    first, gone, last = [await store.enqueue.push(draft(queue=queue, priority=priority)) for priority in (0, -1, -1)]
    await store.jobs.change(gone.id, transitions.cancel)
    assert [job.id for job in await fetch(store, queue, count=2)] == [first.id, last.id]


async def test_a_fetch_that_does_not_wait_relies_on_nothing_it_has_heard(store: Store, other: Store, queue: str) -> None:
    assert await fetch(store, queue) == []
    tapped_connection(store.nats).deaf = True
    pushed = await other.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue)] == [pushed.id]


@only_wakes
async def test_a_waiter_hears_of_what_arrived_while_the_connection_was_away(store: Store, other: Store, queue: str) -> None:
    [waiter] = await parked(store, queue)
    store.nats.connections += 1  # as after a reconnection: something may have been missed
    assert not store.dispatcher.wakeups.empty([queue])
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    pushed = await other.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue, wait_ms=WAIT_MS)] == [pushed.id]


@timed(dispatch=DispatchTimings(fallback_look_s=0.01))
async def test_idle_waiters_ask_once_for_all(store: Store, queue: str, asked: list[str]) -> None:
    looks = 0

    async def still_there() -> bool:
        nonlocal looks
        looks += 1
        return False

    waiters = [
        asyncio.create_task(store.dispatcher.fetch([queue], 1, None, None, WAIT_MS, None, still_there)) for _ in range(5)
    ]
    await eventually(lambda: looks > 50)
    assert asked == [queue], "they know that nothing is there"
    for waiter in waiters:
        waiter.cancel()
    await asyncio.gather(*waiters, return_exceptions=True)


async def test_a_token_that_comes_back_without_a_sound_is_found(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    reader = other.dispatcher.reader
    assert [token.job_id for token in await reader.pull(store.config.ready(queue, 0), queue, 1, much=True)] == [pushed.id]
    # It is in the other process's hand, which dies with it: nobody says so.
    assert [job.id for job in await fetch(store, queue, wait_ms=WAIT_MS)] == [pushed.id]


async def test_many_queues_are_asked_about_together(store: Store, queue: str, asked: list[str]) -> None:
    names = [f"{queue}.{number}" for number in range(30)]
    pushed = await store.enqueue.push(draft(queue=names[-1]))
    assert [job.id for job in await fetch(store, *names)] == [pushed.id]
    assert sorted(asked) == sorted(names)
    pushed = await store.enqueue.push(draft(queue=names[-1]))
    assert [job.id for job in await fetch(store, *names)] == [pushed.id]
    assert sorted(asked) == sorted(names), "and not again"


@pytest.mark.parametrize(
    "timings",
    [StoreTimings(dispatch=DispatchTimings(fallback_look_s=0.01, wakeups=WakeupTimings(sure_s=s))) for s in (0.0, 30.0)],
    ids=["it looks again", "it knows that nothing is there"],
)
async def test_who_gives_up_is_handed_nothing(store: Store, queue: str) -> None:
    gone = False

    async def given_up() -> bool:
        return gone

    waiting_one = asyncio.create_task(store.dispatcher.fetch([queue], 1, None, None, WAIT_MS, None, given_up))
    await eventually(lambda: waiting(store, queue))
    gone = True
    assert await asyncio.wait_for(waiting_one, 60.0) == []
    pushed = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue)] == [pushed.id]
