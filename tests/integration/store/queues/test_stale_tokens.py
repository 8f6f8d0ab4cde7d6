"""Tokens that jobs leave behind in a bounded queue: who ends a job takes its token out, and a full queue is swept of others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest
from msgspec import Raw

import ojs_reaper
from integration.limits.test_limits import held, ids, limited
from integration.samples import attempt, draft, fetch, losing_answers, put_raw, refusal, set_up, timed, tokens, unreachable
from integration.store.dispatch.test_tokens import no_token, put_token
from integration.store.queues.test_capacity import only_tokens
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.threshold_alerts import Threshold
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.domain.unique import keyed
from ojs_engine.store.capacity.stale_tokens import SweepTimings
from ojs_engine.store.records.commit import encode_job
from ojs_engine.store.records.tokens import Token
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_features.bulk.atomic_changes import AtomicChanges
from ojs_features.limits.loop import blocked_jobs_loop
from ojs_runtime.settings import Settings
from support.traffic import counted
from support.waiting import eventually

Leave = Callable[[Store, Job], Awaitable[object]]


def by(decide: Callable[[Job, Moment], Transition]) -> Leave:
    return lambda store, job: store.jobs.change(job.id, decide)


async def purge(store: Store, job: Job) -> None:
    await store.jobs.change(job.id, transitions.cancel)
    await store.jobs.change(job.id, transitions.remove)


async def cancel_together(store: Store, job: Job) -> None:
    await store.of(AtomicChanges).change([job.id], transitions.cancel)


def only_one(queue: str, arg: str) -> Job:
    policy = Raw(b'{"keys": ["type", "args"], "on_conflict": "replace"}')
    return keyed(draft(queue=queue, unique=policy, args=Raw(msgspec.json.encode([arg]))))


async def replace_by_a_unique_one(store: Store, job: Job) -> None:
    [arg] = msgspec.json.decode(job.args)
    await store.enqueue.push(only_one(f"{job.queue}.b", arg))


WAYS: dict[str, Leave] = {
    "cancelled": by(transitions.cancel),
    "purged": purge,
    "discarded with its queue": by(lambda job, moment: transitions.drop(job, "queue_deleted", moment)),
    "moved": by(lambda job, moment: transitions.move(job, f"{job.queue}.b", moment)),
    "rescheduled": by(lambda job, moment: transitions.postpone(job, moment.now + 3_600_000, moment)),
    "cancelled together": cancel_together,
    "replaced": replace_by_a_unique_one,
}


async def left_behind(store: Store, jobs: Sequence[Job], leave: Leave = WAYS["cancelled"]) -> None:
    """End jobs as a process does that dies before it takes their tokens out."""
    taking, store.committer.stale_tokens = store.committer.stale_tokens, None
    for job in jobs:
        await leave(store, job)
    store.committer.stale_tokens = taking


async def fill(store: Store, queue: str, number: int) -> list[Job]:
    return await store.enqueue.push_all([draft(queue=queue) for _ in range(number)])


def level(store: Store, queue: str) -> str:
    return store.capacity._alerts.level(Threshold(queue, queue, bound=True))


# Whoever ends a job


@pytest.mark.parametrize("way", WAYS)
async def test_a_job_that_leaves_takes_its_token_along(store: Store, other: Store, queue: str, way: str) -> None:
    await set_up([store, other], queue, max_size=3)
    jobs = [await store.enqueue.push(only_one(queue, f"{queue} {n}")) for n in range(3)]
    assert await attempt(store, queue) is None
    await WAYS[way](other, jobs[1])
    assert await tokens(store, queue) == 2
    assert await attempt(store, queue) is not None
    assert await attempt(store, queue) is None


async def test_a_job_that_expires_takes_its_token_along(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, max_size=1)
    job = await store.enqueue.push(draft(queue=queue, expires_at=store.clock.now() + 200))
    reaper = ojs_reaper.build(other, Settings())
    await reaper.start()
    try:
        await eventually(lambda: no_token(store, queue))
    finally:
        await reaper.stop()
    assert (await store.jobs.get(job.id)).state is State.DISCARDED


async def test_a_new_priority_has_one_token(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=2)
    low, high = [await store.enqueue.push(draft(queue=queue)) for _ in range(2)]
    await store.jobs.change(high.id, lambda job, moment: transitions.reprioritise(job, 5, moment))
    assert await only_tokens(store, queue) == 2
    assert ids(await fetch(store, queue, count=2)) == [high.id, low.id]


async def test_jobs_that_leave_at_once_take_their_own_tokens_only(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=400)
    jobs = await fill(store, queue, 400)
    gone = random.Random(3).sample(jobs, 250)
    await asyncio.gather(*(store.jobs.change(job.id, transitions.cancel) for job in gone))
    assert await tokens(store, queue) == 150
    assert store.capacity.pressure(queue) == (400, 400, 0.8)
    assert level(store, queue) == "calm"
    there = {job.id for job in jobs} - {job.id for job in gone}
    assert set(ids(await fetch(store, queue, count=400))) == there


async def test_an_end_counts_though_its_token_can_not_be_taken_out_now(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=1)
    [job] = await fill(store, queue, 1)
    with unreachable(store.nats, "$JS.API.STREAM.MSG.DELETE"):
        assert (await store.jobs.change(job.id, transitions.cancel)).after.state is State.CANCELLED
    assert await tokens(store, queue) == 1
    assert await attempt(store, queue) is not None


async def test_a_fetch_is_answered_when_its_places_are_free(store: Store, other: Store, queue: str, way: str) -> None:
    await set_up([store, other], queue, max_size=3)
    await fill(store, queue, 3)
    answer = "$JS.API.STREAM.MSG.DELETE" if way == "head" else "$JS.ACK"
    with losing_answers(store.bulk, answer) as waited_for:
        assert len(await fetch(store, queue, count=2)) == 2
    assert waited_for, "an answer that doesn't come is not waited for long"
    assert [await attempt(other, queue) is not None for _ in range(3)] == [True, True, False]


# A queue that seems full


@timed(sweeps=SweepTimings(sweep_s=60.0))  # one push is to find it, on a busy machine, too
@pytest.mark.parametrize("left", ["cancelled", "purged", "moved"])
async def test_what_somebody_who_died_has_left_is_found_wherever_it_is(store: Store, queue: str, left: str) -> None:
    await set_up([store], queue, max_size=600)
    jobs = await fill(store, queue, 600)
    await left_behind(store, [jobs[-1]], WAYS[left])
    assert await tokens(store, queue) == 600
    assert await attempt(store, queue) is not None
    assert await attempt(store, queue) is None
    assert len(await fetch(store, queue, count=1_000)) == 600


async def test_tokens_from_before_a_queue_was_bounded_do_not_count(store: Store, queue: str) -> None:
    jobs = await fill(store, queue, 5)
    for job in jobs[1:]:
        await purge(store, job)
    assert await tokens(store, queue) == 5
    await set_up([store], queue, max_size=2)
    assert await attempt(store, queue) is not None
    assert await tokens(store, queue) == 2
    assert await attempt(store, queue) is None


@timed(sweeps=SweepTimings(rest_s=0.5))
async def test_a_full_queue_costs_a_refused_push_nothing_but_the_count(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=20)
    jobs = await fill(store, queue, 20)
    assert await attempt(store, queue) is None
    with counted(store) as sent:
        assert await attempt(store, queue) is None
    reads = ("STREAM.MSG.GET", "STREAM.INFO", "DIRECT.GET")
    assert dict(sent) == {f"$JS.API.{read}.{store.config.ready_stream}": 1 for read in reads}
    await left_behind(store, jobs[:1])
    assert await attempt(store, queue) is None, "it was swept just now"
    assert await eventually(lambda: attempt(store, queue)), "it is swept again"


@timed(sweeps=SweepTimings(ahead_ms=-60_000))  # looked for where it isn't
async def test_a_token_that_was_not_found_makes_the_next_push_sweep_again(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=2)
    jobs = await fill(store, queue, 2)
    assert await attempt(store, queue) is None
    await store.jobs.change(jobs[0].id, transitions.cancel)
    assert await tokens(store, queue) == 2
    assert await attempt(store, queue) is not None


@timed(sweeps=SweepTimings(sweep_s=0.0, page=10))
async def test_a_long_sweep_is_gone_on_with_by_the_next_push(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=40)
    jobs = await fill(store, queue, 40)
    await left_behind(store, jobs[-1:])
    pushes = 0
    while await attempt(store, queue) is None:
        pushes += 1
    assert pushes == 3


async def test_a_push_that_is_repeated_takes_one_place(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, max_size=4)
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(2)]
    for job in jobs:
        with refusal("duplicate"):
            await other.enqueue.push(draft(id=job.id, queue=queue))
    assert await only_tokens(store, queue) == 4
    later = [await attempt(store, queue) for _ in range(3)]
    assert [job is not None for job in later] == [True, True, False]
    assert ids(await fetch(store, queue, count=9)) == ids([*jobs, *(job for job in later if job is not None)])


async def test_no_token_is_taken_for_a_double_of_itself(store: Store, queue: str) -> None:
    """A look that failed at its end is repeated, and others may look at the same time."""
    await fill(store, queue, 3)
    seen: dict[Token, int] = {}
    looks = [await store.capacity._stale_tokens.look(queue, store.config.ready_of_queue(queue), seen=seen) for _ in range(2)]
    assert [(len(look.live), look.deleted) for look in looks] == [(3, 0)] * 2


async def test_a_copy_of_a_limited_jobs_token_is_kept(store: Store, queue: str) -> None:
    """The first may be put aside for its key at any moment, and come back behind the copy."""
    job = await store.enqueue.push(limited(queue, queue, concurrency=1))
    await put_token(store, queue, job.id, job.token or "", 0)
    look = await store.capacity._stale_tokens.look(queue, store.config.ready_of_queue(queue))
    assert (len(look.live), look.deleted) == (2, 0)


async def test_a_token_ahead_of_its_record_is_left_alone(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=1)
    early = draft(queue=queue)
    moment = store.clock.moment()
    await put_token(store, queue, early.id, moment.op, 0)
    assert await attempt(store, queue) is None
    await put_raw(store, store.config.job(early.id), encode_job(transitions.push(early, moment).job))
    assert ids(await fetch(store, queue)) == [early.id]


@timed(sweeps=SweepTimings(drop_after_ms=-1))
async def test_a_token_whose_record_never_came_and_what_is_none_go(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=2)
    await put_token(store, queue, draft().id, "junk", 0)
    await put_raw(store, store.config.ready(queue, 3), b"hello")
    assert await attempt(store, queue) is not None
    assert await attempt(store, queue) is not None
    assert await attempt(store, queue) is None


@pytest.mark.parametrize("swept", [False, True], ids=["taken out", "swept"])
async def test_who_waits_for_a_key_hears_of_a_job_that_left_in_its_place(
    store: Store, other: Store, queue: str, swept: bool
) -> None:
    """The one that was let go has ended, and its token with it: another one's turn."""
    await set_up([store, other], queue, max_size=3)
    running, second, third = [await store.enqueue.push(limited(queue, queue, concurrency=1)) for _ in range(3)]
    assert ids(await fetch(store, queue, count=3)) == [running.id]
    assert await held(store, queue) == 2
    keeper = blocked_jobs_loop(other)
    await keeper.start()
    try:
        await store.jobs.change(running.id, transitions.cancel)
        await eventually(lambda: tokens(store, queue))
        if swept:
            await left_behind(store, [second])
            await store.capacity._stale_tokens.sweep(queue)
        else:
            await store.jobs.change(second.id, transitions.cancel)
        found: list[Job] = await eventually(lambda: fetch(store, queue), 4)  # sooner than time alone would let it go
        assert ids(found) == [third.id]
    finally:
        await keeper.stop()


# Tokens that are put aside for their keys


async def fill_aside(store: Store, queue: str, number: int) -> list[Job]:
    """Jobs that wait for a key of which none may start."""
    jobs = [await store.enqueue.push(limited(queue, queue, concurrency=0)) for _ in range(number)]
    assert await fetch(store, queue, count=number) == []
    assert await held(store, queue) == number
    return jobs


@pytest.mark.parametrize("way", ["cancelled", "swept"])
async def test_who_waits_for_a_key_has_a_place_until_the_job_leaves(store: Store, other: Store, queue: str, way: str) -> None:
    await set_up([store, other], queue, max_size=3)
    jobs = await fill_aside(store, queue, 3)
    assert await attempt(other, queue) is None
    if way == "cancelled":
        await store.jobs.change(jobs[1].id, transitions.cancel)
    else:
        await left_behind(store, jobs[1:2])
        other.capacity._stale_tokens._sweeps.drop(queue)
    assert await attempt(other, queue) is not None
    assert (await held(store, queue), await tokens(store, queue)) == (2, 1)
    assert await attempt(store, queue) is None


async def test_the_oldest_that_is_dropped_may_be_one_that_waits_for_a_key(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=2, overflow_policy="drop_oldest")
    first, second = await fill_aside(store, queue, 2)
    third = await store.enqueue.push(draft(queue=queue))
    await store.enqueue.push(draft(queue=queue))
    states = [(await store.jobs.get(job.id)).state for job in (first, second, third)]
    assert states == [State.DISCARDED, State.DISCARDED, State.AVAILABLE]
    assert (await held(store, queue), await tokens(store, queue)) == (0, 2)


async def test_a_fetch_that_puts_jobs_aside_leaves_their_queue_as_full_as_it_was(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=3)
    await fill_aside(store, queue, 3)
    assert level(store, queue) == "full"


# Dropping the oldest


async def test_nothing_is_dropped_for_a_token_that_stands_for_nothing(store: Store, queue: str) -> None:
    before = await dropped()
    await set_up([store], queue, max_size=3, overflow_policy="drop_oldest")
    jobs = await fill(store, queue, 3)
    await left_behind(store, jobs[1:2])
    newer = await store.enqueue.push(draft(queue=queue))
    states = [(await store.jobs.get(job.id)).state for job in (*jobs, newer)]
    assert states == [State.AVAILABLE, State.CANCELLED, State.AVAILABLE, State.AVAILABLE]
    assert await dropped() == before
    await store.enqueue.push(draft(queue=queue))
    states = [(await store.jobs.get(job.id)).state for job in (*jobs, newer)]
    assert states == [State.DISCARDED, State.CANCELLED, State.AVAILABLE, State.AVAILABLE]
    assert await dropped() == before + 1
    assert await only_tokens(store, queue) == 3


async def dropped() -> int:
    """How many jobs the metrics count as dropped."""
    exposed = (await metrics.exposition()).decode().splitlines()
    lines = [line for line in exposed if line.startswith("ojs_backpressure_dropped_total{")]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines)


# Everything at once


async def test_the_bound_holds_and_all_of_it_can_be_used_while_jobs_are_pushed_cancelled_and_fetched(
    store: Store, other: Store, queue: str
) -> None:
    await set_up([store, other], queue, max_size=8)
    chance = random.Random(7)
    waiting: list[str] = []
    most = 0
    done = False

    async def push(one: Store) -> None:
        for n in range(15):
            job = await attempt(one, queue, priority=n % 2)
            if job is None:
                await asyncio.sleep(chance.random() * 0.01)  # at any point of the others' work, as those below
            else:
                waiting.append(job.id)

    async def cancel(one: Store) -> None:
        while not done:
            await asyncio.sleep(chance.random() * 0.005)
            if waiting:
                await one.jobs.change(waiting.pop(chance.randrange(len(waiting))), transitions.cancel)

    async def drain(one: Store) -> None:
        while not done:
            await fetch(one, queue, count=chance.randint(1, 3))
            await asyncio.sleep(chance.random() * 0.01)

    async def watch() -> None:
        nonlocal most
        while not done:
            most = max(most, (await store.capacity._holds(queue))[0])

    others = [asyncio.create_task(one) for one in (cancel(store), cancel(other), drain(store), drain(other), watch())]
    await asyncio.gather(*(push(one) for one in (store, other) for _ in range(3)))
    done = True
    await asyncio.wait_for(asyncio.gather(*others), 60.0)
    assert 0 < most <= 8
    found = await store.records.many(list(dict.fromkeys(waiting)))
    left = sum(one.job is not None and one.job.state is State.AVAILABLE for one in found.values())
    assert await only_tokens(store, queue) == left
    for n in range(8 - left):
        assert await attempt((store, other)[n % 2], queue) is not None
    for one in (store, other):
        with refusal("queue_full"):
            await one.enqueue.push(draft(queue=queue))
