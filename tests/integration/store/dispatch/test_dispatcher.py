from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from contextlib import ExitStack

import msgspec
import pytest
from msgspec import Raw

from integration.samples import draft, failed, fetch, from_durables, requeued, tokens, unreachable
from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Collected, Failed, ReplyOrFailure
from ojs_engine.store.store import Store
from ojs_features.limits.subjects import Subjects
from support.outside import Collect, Send, before, collecting, tapped
from support.waiting import eventually


async def drained(store: Store, *queues: str, count: int = 1) -> list[Job]:
    jobs: list[Job] = []
    while found := await fetch(store, *queues, count=count):
        jobs += found
    return jobs


# Order


@pytest.mark.parametrize("count", [1, 7, 100])
async def test_priorities_come_from_high_to_low_and_equals_in_order(store: Store, other: Store, queue: str, count: int) -> None:
    chance = random.Random(4)
    pushed = [
        await chance.choice((store, other)).enqueue.push(draft(queue=queue, priority=chance.choice((-100, -1, 0, 5, 100))))
        for _ in range(40)
    ]
    wanted = sorted(pushed, key=lambda job: -job.priority)
    assert [job.id for job in await drained(other, queue, count=count)] == [job.id for job in wanted]


async def test_order_holds_through_two_processes_that_take_turns(store: Store, other: Store, queue: str) -> None:
    pushed = [await store.enqueue.push(draft(queue=queue, priority=n % 3)) for n in range(30)]
    wanted = [job.id for job in sorted(pushed, key=lambda job: -job.priority)]
    taken: list[str] = []
    for turn in range(30):
        taken += [job.id for job in await fetch((store, other)[turn % 2], queue)]
    assert taken == wanted


async def test_queues_are_served_from_left_to_right(store: Store, queue: str) -> None:
    low = await store.enqueue.push(draft(queue=f"{queue}.b", priority=100))
    first = await store.enqueue.push(draft(queue=f"{queue}.a", priority=-100))
    found = await fetch(store, f"{queue}.a", f"{queue}.empty", f"{queue}.b", count=5)
    assert [job.id for job in found] == [first.id, low.id]


async def test_a_later_job_of_higher_priority_overtakes(store: Store, queue: str) -> None:
    first, second = [await store.enqueue.push(draft(queue=queue)) for _ in range(2)]
    assert [job.id for job in await fetch(store, queue)] == [first.id]
    urgent = await store.enqueue.push(draft(queue=queue, priority=1))
    assert [job.id for job in await drained(store, queue)] == [urgent.id, second.id]


async def test_a_requeued_job_goes_to_the_back(store: Store, queue: str) -> None:
    first, second = [await store.enqueue.push(draft(queue=queue)) for _ in range(2)]
    await fetch(store, queue)
    await store.jobs.change(first.id, requeued)
    assert [job.id for job in await drained(store, queue)] == [second.id, first.id]


# Exclusiveness


async def test_every_job_goes_to_one_of_many_fetchers(store: Store, other: Store, queue: str) -> None:
    pushed = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(200)]
    taken: list[Job] = []

    async def fetcher(number: int) -> None:
        one = (store, other)[number % 2]
        while len(taken) < len(pushed):
            taken.extend(await fetch(one, queue, count=1 + number % 5, worker=f"w{number}", wait_ms=150))

    await asyncio.gather(*(fetcher(number) for number in range(16)))
    assert sorted(job.id for job in taken) == sorted(pushed)
    for job in taken:
        assert (await store.jobs.get(job.id)).worker == job.worker
        assert job.attempt == 1


async def test_what_is_handed_out_is_stored_as_such(store: Store, other: Store, queue: str) -> None:
    await store.enqueue.push(draft(queue=queue))
    [claimed] = await fetch(store, queue, worker="w", lease_ms=45_000)
    assert claimed == await other.jobs.get(claimed.id)
    assert (claimed.state, claimed.worker, claimed.attempt) == (State.ACTIVE, "w", 1)
    assert (claimed.visible_until or 0) - (claimed.started_at or 0) == 45_000


async def test_an_empty_queue_gives_nothing(store: Store, queue: str) -> None:
    assert await fetch(store, queue, count=10) == []


# Trouble


async def test_an_expired_job_at_the_head_is_discarded_and_not_handed_out(store: Store, queue: str) -> None:
    late = await store.enqueue.push(draft(queue=queue, expires_at=store.clock.now() + 1))
    good = await store.enqueue.push(draft(queue=queue))
    await eventually(lambda: store.clock.now() > (late.expires_at or 0))
    assert [job.id for job in await fetch(store, queue)] == [good.id]
    found = await store.jobs.get(late.id)
    assert found.state is State.DISCARDED
    assert found.error is not None
    assert found.error.type == "expired"


@pytest.mark.parametrize("timings", [from_durables()], ids=["durable"])
async def test_a_consumer_deleted_behind_its_back_is_made_again(store: Store, queue: str) -> None:
    first = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue)] == [first.id]
    name = store.config.ready_consumer(store.config.ready(queue, 0))
    gone = await call(store.nats, f"CONSUMER.DELETE.{store.config.ready_stream}.{name}")
    assert gone.get("success"), gone
    second = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue)] == [second.id]


async def test_what_is_claimed_goes_out_though_the_rest_fails(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    junk = draft(queue=queue)
    await store.nats.request(store.config.ready(queue, 0), f"{junk.id} word 0".encode())
    reads = 0

    def fails_the_second_time(_send: Send, subject: str, *_: object) -> Awaitable[ReplyOrFailure] | None:
        nonlocal reads
        if junk.id not in subject:
            return None
        reads += 1
        return away() if reads > 1 else None

    async def away() -> Failed:
        return Failed("the connection to NATS was lost", sent=True)

    with tapped(store.nats, fails_the_second_time), tapped(store.bulk, fails_the_second_time):
        assert [job.id for job in await fetch(store, queue, count=2)] == [pushed.id]
    assert reads > 1


async def test_what_is_claimed_goes_out_though_the_next_pull_fails(store: Store, queue: str) -> None:
    pushed, _ = [await store.enqueue.push(draft(queue=queue, priority=priority)) for priority in (1, 0)]
    pulls = 0

    async def away_after_the_claim(
        collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float
    ) -> Collected | Failed:
        nonlocal pulls
        pulls += 1
        if pulls > 1:
            return Failed("the connection to NATS was lost", sent=True)
        return await collect(subject, payload, wanted, timeout_s)

    with collecting(store.bulk, away_after_the_claim):
        assert [job.id for job in await fetch(store, queue, count=5)] == [pushed.id]
    assert pulls == 2


# Giving back


async def test_giving_back_undoes_the_claim_and_costs_no_attempt(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    [claimed] = await fetch(store, queue, worker="gone")
    with store.dispatcher.returning([claimed]):
        pass
    [again] = await fetch(other, queue, worker="w", wait_ms=60_000)
    assert (again.id, again.worker, again.uncharged) == (pushed.id, "w", 1)


@pytest.mark.usefixtures("own_stores")
async def test_giving_back_takes_no_other_attempt_away(store: Store, other: Store, queue: str) -> None:
    await store.enqueue.push(draft(queue=queue))
    [claimed] = await fetch(store, queue, worker="w")
    await other.jobs.change(claimed.id, requeued)
    [second] = await fetch(other, queue, worker="w")
    with store.dispatcher.returning([claimed]):
        pass
    await store.dispatcher.close()  # finishes what is given back
    found = await other.jobs.get(claimed.id)
    assert (found.state, found.attempt) == (State.ACTIVE, second.attempt)


@pytest.mark.usefixtures("own_stores")
async def test_a_claim_that_is_not_confirmed_is_given_back(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    commit_all = store.committer.commit_all

    async def unconfirmed(commits: object) -> object:
        await commit_all(commits)  # type: ignore[arg-type]
        return [unavailable("the answer was lost")]

    store.committer.commit_all = unconfirmed  # type: ignore[method-assign,assignment]
    with pytest.raises(OjsError):
        await fetch(store, queue)
    store.committer.commit_all = commit_all  # type: ignore[method-assign]
    [again] = await fetch(other, queue, wait_ms=60_000)
    assert (again.id, again.attempt, again.uncharged) == (pushed.id, 2, 1)


async def test_a_handed_out_job_leaves_no_token(store: Store, queue: str) -> None:
    for _ in range(3):
        await store.enqueue.push(draft(queue=queue))
    for job in await fetch(store, queue, count=3):
        await store.jobs.change(job.id, failed)

    async def no_token() -> bool:
        return await tokens(store, queue) == 0

    await eventually(no_token)


async def test_a_job_moved_by_a_retry_is_found_in_its_new_queue_only(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    give_up = transitions.Failure(message="no", action="DEAD_LETTER")
    await store.jobs.change(pushed.id, lambda job, moment: transitions.nack(job, give_up, transitions.JobHolder(), moment))
    override = transitions.RetryOverride(queue=f"{queue}.other")
    await store.jobs.change(pushed.id, lambda job, moment: transitions.retry_discarded(job, override, moment))
    assert await fetch(store, queue) == []
    assert [job.id for job in await fetch(store, f"{queue}.other")] == [pushed.id]


async def test_claims_are_delivered_though_the_limits_of_others_can_not_be_told(store: Store, other: Store, queue: str) -> None:
    """One of two claims meets a conflict, and what follows from that fails: the other is somebody's all the same."""
    policy = Raw(msgspec.json.encode({"key": queue, "concurrency": 5}))
    jobs = [await store.enqueue.push(draft(queue=queue, rate_limit=policy)) for _ in range(2)]

    async def is_cancelled() -> None:
        await other.jobs.change(jobs[0].id, transitions.cancel)
        away.enter_context(unreachable(store.nats, Subjects(store.config).limit(""), times=1_000))

    with ExitStack() as away, before(store.nats, store.config.job(jobs[0].id), is_cancelled) as met:
        claimed = await fetch(store, queue, count=2)
    assert met
    assert [job.id for job in claimed] == [jobs[1].id]


@pytest.mark.usefixtures("own_stores")
async def test_what_is_given_back_is_the_claim_that_was_not_confirmed_and_no_later_one(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    never_stored = transitions.claim(pushed, "w", None, store.clock.moment()).job
    [held] = await store.dispatcher.fetch([queue], 1, "w", None, 0)
    assert (never_stored.attempt, never_stored.worker) == (held.attempt, held.worker)
    store.dispatcher._requeuer.give_back(never_stored, "the claim was not confirmed in time")
    await store.dispatcher._requeuer.close()
    assert (await store.jobs.get(pushed.id)).state is State.ACTIVE
    store.dispatcher._requeuer.give_back(held, "its fetch was not answered")
    await store.dispatcher._requeuer.close()
    assert (await store.jobs.get(pushed.id)).state is State.AVAILABLE


async def test_claims_are_given_back_if_a_fetch_fails_for_a_reason_that_nobody_thought_of(store: Store, queue: str) -> None:
    job, _ = [await store.enqueue.push(draft(queue=queue, priority=priority)) for priority in (1, 0)]
    pulls = 0

    async def fails(collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        nonlocal pulls
        if store.config.ready_stream in subject:
            pulls += 1
            if pulls > 1:
                raise LookupError("what")
        return await collect(subject, payload, wanted, timeout_s)

    with collecting(store.bulk, fails), pytest.raises(LookupError):
        await fetch(store, queue, count=2)

    async def is_back() -> bool:
        found = await store.jobs.get(job.id)
        return found.state is State.AVAILABLE and found.uncharged == 1

    await eventually(is_back, 60.0)
