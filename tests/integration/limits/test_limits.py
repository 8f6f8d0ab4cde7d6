from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.samples import acked, draft, failed, fetch, requeued, set_up, subjects, timed, tokens
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.domain.queues.config import Rate
from ojs_engine.domain.rate_limits.policy import LimitPolicy
from ojs_engine.jetstream.contents import message
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.store import Store
from ojs_features.limits.limits import Limits
from ojs_features.limits.permits import PermitClaim, key_scope, queue_scope
from ojs_features.limits.rules import COMING_MS, Grant, LimitOverride
from ojs_features.limits.subjects import Subjects
from support.outside import after, clock_of, standing
from support.waiting import eventually

DAY_MS = 86_400_000


def limited(queue: str, key: str | None, **policy: Any) -> Job:
    body = policy if key is None else {"key": key, **policy}
    return draft(queue=queue, rate_limit=Raw(msgspec.json.encode(body)))


async def push(store: Store, queue: str, key: str | None, number: int, **policy: Any) -> list[Job]:
    return [await store.enqueue.push(limited(queue, key, **policy)) for _ in range(number)]


async def held(store: Store, key: str) -> int:
    return await store.of(Limits).blocked.count(key_scope(key))


async def none_held(store: Store, key: str) -> bool:
    """Say whether no token is left on hold. One that moves leaves behind the token that is fetched: a worker may be faster."""
    return await held(store, key) == 0


def ids(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


# Concurrency of a key


@pytest.mark.usefixtures("keeper")
async def test_no_more_than_the_limit_run_at_once_and_the_next_come_in_order(store: Store, queue: str, key: str) -> None:
    jobs = await push(store, queue, key, 6, concurrency=2)
    first = await fetch(store, queue, count=10)
    assert ids(first) == ids(jobs[:2])
    assert await held(store, key) == 4
    assert {(await store.jobs.get(job.id)).state for job in jobs[2:]} == {State.AVAILABLE}
    ended: list[str] = []
    while len(ended) < 6:
        for job in first:
            await store.jobs.change(job.id, acked)
            ended.append(job.id)
        first = await eventually(lambda: fetch(store, queue, count=10)) if len(ended) < 6 else []
    assert ended == ids(jobs)
    await eventually(lambda: none_held(store, key))


@pytest.mark.usefixtures("keeper")
@pytest.mark.parametrize("end", [acked, failed, requeued, transitions.cancel], ids=["ack", "nack", "requeue", "cancel"])
async def test_every_end_of_a_run_lets_the_next_go(store: Store, queue: str, key: str, end: Callable[..., Any]) -> None:
    first = await store.enqueue.push(limited(queue, key, concurrency=1))
    [running] = await fetch(store, queue)
    [second] = await push(store, queue, key, 1, concurrency=1)
    assert await fetch(store, queue) == []
    await store.jobs.change(running.id, end)
    found = await eventually(lambda: fetch(store, queue))
    assert found[0].id in {first.id, second.id}


async def test_a_key_at_its_limit_does_not_stop_others_of_the_queue(store: Store, queue: str, key: str) -> None:
    await push(store, queue, key, 3, concurrency=1)
    others = [
        await store.enqueue.push(draft(queue=queue)),
        await store.enqueue.push(limited(queue, f"{key}.2", concurrency=1)),
        await store.enqueue.push(draft(queue=queue)),
    ]
    found = await fetch(store, queue, count=10)
    assert len(found) == 4
    assert ids(found)[1:] == ids(others)


@pytest.mark.usefixtures("keeper")
async def test_who_waited_goes_on_by_priority_and_ahead_of_those_that_came_later(store: Store, queue: str, key: str) -> None:
    [running] = await started(store, queue, key)
    low, high, last = [
        await store.enqueue.push(msgspec.structs.replace(limited(queue, key, concurrency=1), priority=n)) for n in (0, 5, 0)
    ]
    assert await fetch(store, queue, count=5) == []
    for expected in (high, low, last):
        later = await store.enqueue.push(draft(queue=queue))
        await store.jobs.change(running.id, acked)
        await eventually(lambda: is_ready(store, queue))
        [running] = await fetch(store, queue)
        assert running.id == expected.id
        assert ids(await fetch(store, queue, count=5)) == [later.id]


async def test_who_was_let_go_too_soon_keeps_the_place(store: Store, queue: str, key: str) -> None:
    jobs = await push(store, queue, key, 9, concurrency=2)
    ended: list[str] = []
    running = await fetch(store, queue, count=10)
    while running:
        for job in running:
            await store.jobs.change(job.id, acked)
            ended.append(job.id)
        for _ in range(2):  # neither knows what the other lets go
            await store.of(Limits).blocked.look(key_scope(key), "", b"", store.clock.now())
        running = await fetch(store, queue, count=10)
    assert ended == ids(jobs)


async def started(store: Store, queue: str, key: str) -> list[Job]:
    await push(store, queue, key, 1, concurrency=1)
    return await fetch(store, queue)


async def is_ready(store: Store, queue: str) -> bool:
    """Whether a token has been let go."""
    return any(
        subject.endswith(".front")
        for subject in await subjects(store, store.config.ready_stream, store.config.ready_of_queue(queue))
    )


async def test_one_key_holds_over_several_queues_and_gateways(store: Store, other: Store, queue: str, key: str) -> None:
    for name in (queue, f"{queue}.b"):
        await push(store, name, key, 5, concurrency=3)
    fetches = [fetch(one, name, count=4) for one in (store, other) for name in (queue, f"{queue}.b")]
    found = list(chain.from_iterable(await asyncio.gather(*fetches)))
    assert len(found) == 3


@pytest.mark.usefixtures("keeper")
async def test_a_claim_of_a_gateway_that_died_is_given_up(store: Store, queue: str, key: str) -> None:
    jobs = await push(store, queue, key, 2, concurrency=1)
    policy = LimitPolicy(key=key, concurrency=1)
    stored = await store.records.leader(jobs[0].id)
    claim = PermitClaim(jobs[0].id, "op", stored.sequence)  # the permit is taken, the claim never written
    assert (await store.of(Limits).permits.take(key_scope(key), [claim], policy)).number == 1
    assert (await store.of(Limits).permits.room(key_scope(key), policy)).number == 0
    clock_of(store).ahead_ms = COMING_MS
    found = await eventually(lambda: fetch(store, queue, count=5), 60)
    assert len(found) == 1
    await store.jobs.change(found[0].id, acked)
    assert len(await eventually(lambda: fetch(store, queue, count=5), 60)) == 1


@pytest.mark.usefixtures("keeper")
async def test_under_contention_the_limit_is_never_exceeded_and_everything_runs_once(
    store: Store, other: Store, queue: str, key: str
) -> None:
    jobs = await push(store, queue, key, 40, concurrency=3)
    running: set[str] = set()
    most = 0
    full = asyncio.Event()
    done: list[str] = []

    async def work(one: Store) -> None:
        nonlocal most
        while len(done) < len(jobs):
            for job in await fetch(one, queue, wait_ms=200):
                running.add(job.id)
                most = max(most, len(running))
                if most == 3:
                    full.set()
                await full.wait()
                await asyncio.sleep(0.02)  # the job's work, so that others would overlap
                running.discard(job.id)
                await one.jobs.change(job.id, acked)
                done.append(job.id)

    await asyncio.wait_for(asyncio.gather(*(work(one) for one in (store, other) for _ in range(4))), 120)
    assert most == 3
    assert sorted(done) == sorted(ids(jobs))


@pytest.mark.usefixtures("keeper")
async def test_a_key_that_may_not_run_at_all_waits_until_an_operator_lets_it(store: Store, queue: str, key: str) -> None:
    await push(store, queue, key, 2, concurrency=0)
    assert await fetch(store, queue, count=5) == []
    await store.of(Limits).permits.override(key_scope(key), LimitOverride(concurrency=1))
    assert len(await eventually(lambda: fetch(store, queue, count=5))) == 1


@pytest.mark.parametrize(("expires_in_days", "kept_days"), [(None, None), (400, 430), (-1, 30)])
async def test_what_an_operator_has_set_outlasts_a_limit_that_nobody_uses(
    store: Store, queue: str, key: str, expires_in_days: int | None, kept_days: int | None
) -> None:
    """A month without use forgets a limit, but doesn't let jobs start that an operator has stopped."""
    await push(store, queue, key, 1, concurrency=5)
    expires_at = None if expires_in_days is None else store.clock.now() + expires_in_days * DAY_MS
    override = LimitOverride(concurrency=0, expires_at=expires_at)
    await store.of(Limits).permits.override(key_scope(key), override)
    ttl_s = await kept_s(store, key)
    assert ttl_s is None if kept_days is None else abs((ttl_s or 0) - kept_days * DAY_MS // 1_000) < 3_600
    await store.of(Limits).permits.override(key_scope(key), None)
    assert await kept_s(store, key) == 30 * DAY_MS // 1_000


async def kept_s(store: Store, key: str) -> int | None:
    """Return how long nats-server keeps a limit's record that isn't written again, None if for ever."""
    which = {"last_by_subj": Subjects(store.config).limit(key_scope(key))}
    found = await message(store.nats, store.config.records_stream, which, "a record")
    assert found is not None
    ttl = re.search(rb"Nats-TTL: ?(\d+)s", found.hdrs)
    return None if ttl is None else int(ttl[1])


# Rates


@pytest.mark.usefixtures("keeper")
async def test_no_more_start_within_a_period_than_the_rate_allows(store: Store, queue: str, key: str) -> None:
    jobs = await push(store, queue, key, 5, rate={"limit": 2, "period": "PT0.6S"})
    starts: list[int] = []
    while len(starts) < 5:
        starts += [job.started_at or 0 for job in await eventually(lambda: fetch(store, queue, count=5))]
    assert len(jobs) == 5
    for n in range(3):
        assert starts[n + 2] - starts[n] >= 600 - 20


@pytest.mark.usefixtures("keeper")
async def test_throttled_starts_are_spaced_evenly_and_no_further_than_they_must(store: Store, queue: str, key: str) -> None:
    await push(store, queue, key, 10, throttle={"limit": 10, "period": "PT1S"})
    starts: list[int] = []
    while len(starts) < 10:
        starts += [job.started_at or 0 for job in await eventually(lambda: fetch(store, queue, count=5))]
    assert all(later - earlier >= 80 for earlier, later in pairwise(starts))
    nearest = min(later - earlier for earlier, later in pairwise(starts))
    assert nearest < 180, "250 and more where nothing but timers of nats-server lets the next one go"


async def test_over_its_rate_a_job_is_rescheduled_or_dropped_if_it_says_so(store: Store, queue: str, key: str) -> None:
    rate = {"limit": 1, "period": "PT1H"}
    await push(store, queue, key, 1, rate=rate)
    assert await fetch(store, queue)
    [later] = await push(store, queue, key, 1, rate=rate, on_limit="reschedule")
    [gone] = await push(store, queue, key, 1, rate=rate, on_limit="drop")
    assert await fetch(store, queue, count=5) == []
    postponed = await store.jobs.get(later.id)
    assert postponed.state is State.SCHEDULED
    assert (postponed.scheduled_at or 0) - store.clock.now() > 3_500_000
    dropped = await store.jobs.get(gone.id)
    assert (dropped.state, dropped.error and dropped.error.type) == (State.DISCARDED, "rate_limited")


async def test_a_rate_without_a_key_is_the_queues(store: Store, other: Store, queue: str) -> None:
    jobs = await push(store, queue, None, 3, max_per_second=1)
    with standing(store), standing(other):
        first = await fetch(store, queue, count=3)
        assert ids(first) == [jobs[0].id]
        assert await fetch(other, queue, count=3) == []
    found = await fetch(other, queue, count=3, wait_ms=60_000)
    assert ids(found) == [jobs[1].id]
    assert (found[0].started_at or 0) - (first[0].started_at or 0) > 900


@timed(dispatch=DispatchTimings(fallback_look_s=3_600.0))
async def test_a_fetch_that_waits_is_woken_when_its_queues_rate_has_room(store: Store, queue: str) -> None:
    jobs = await push(store, queue, None, 2, rate=1, period=0.3)
    assert ids(await fetch(store, queue, count=2)) == [jobs[0].id]
    async with asyncio.timeout(60):
        assert ids(await fetch(store, queue, wait_ms=600_000)) == [jobs[1].id]  # by itself it would look after an hour


# Queues


@pytest.mark.usefixtures("keeper")
async def test_a_queues_concurrency_holds_and_waiting_fetches_go_on(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, concurrency=2)
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(5)]
    running = await fetch(store, queue, count=4)
    assert ids(running) == ids(jobs[:2])
    assert await fetch(other, queue, count=4) == []
    assert await tokens(store, queue) == 3  # in their places
    waiting = asyncio.create_task(fetch(other, queue, wait_ms=60_000))
    await eventually(lambda: other.dispatcher.wakeups._queues[queue].waiters)
    await store.jobs.change(running[0].id, acked)
    found = await asyncio.wait_for(waiting, 60.0)
    assert ids(found) == [jobs[2].id]
    assert await fetch(store, queue) == []


async def test_a_queues_rate_holds_over_gateways(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, rate_limit=Rate(3, 60_000))
    for _ in range(6):
        await store.enqueue.push(draft(queue=queue))
    found = list(chain.from_iterable(await asyncio.gather(fetch(store, queue, count=2), fetch(other, queue, count=2))))
    found += await fetch(store, queue, count=5)
    found += await fetch(other, queue, count=5)
    assert len(found) == 3
    assert (await store.of(Limits).permits.read(queue_scope(queue)))[1].holders == ()


async def test_a_job_needs_both_permits_and_gives_back_the_one_it_cannot_use(
    store: Store, other: Store, queue: str, key: str
) -> None:
    """Another gateway's claim comes after this one has looked for room."""
    await set_up([store, other], queue, concurrency=1)
    await push(store, queue, key, 1, concurrency=1)
    another = [PermitClaim("another", "op", 0)]
    granted: list[Grant] = []

    async def another_claims() -> None:
        taken = await other.of(Limits).permits.take(queue_scope(queue), another, LimitPolicy(concurrency=1))
        assert taken.grant is not None
        granted.append(taken.grant)

    with after(store.nats, Subjects(store.config).limit(key_scope(key)), another_claims):
        assert await fetch(store, queue) == []
    assert (await store.of(Limits).permits.read(key_scope(key)))[1].holders == ()
    await other.of(Limits).permits.give_back(queue_scope(queue), granted[0], another)
    [job] = await eventually(lambda: fetch(store, queue))
    assert set(job.permits) == {key_scope(key), queue_scope(queue)}


async def test_queues_without_limits_touch_none_of_it(store: Store, queue: str) -> None:
    await store.enqueue.push(draft(queue=queue))
    [job] = await fetch(store, queue)
    await store.jobs.change(job.id, acked)
    assert job.permits == ()
    assert await subjects(store, store.config.records_stream, Subjects(store.config).limit(queue_scope(queue))) == {}
    assert (
        await subjects(store, store.config.records_stream, f"{store.config.namespace}.step.limit.{queue_scope(queue)}.>") == {}
    )


@pytest.mark.usefixtures("keeper")
async def test_a_job_that_ends_by_itself_lets_the_next_go(store: Store, queue: str, key: str) -> None:
    once = Retry(max_attempts=1)
    body = Raw(msgspec.json.encode({"key": key, "concurrency": 1}))
    with standing(store):
        for _ in range(2):
            await store.enqueue.push(draft(queue=queue, rate_limit=body, retry=once, expires_at=store.clock.now() + 400))
        [running] = await fetch(store, queue)
        assert await fetch(store, queue) == []
        third = await store.enqueue.push(draft(queue=queue, rate_limit=body))
        assert await fetch(store, queue) == []
    await eventually(lambda: store.clock.now() > (running.expires_at or 0))
    await store.jobs.change(running.id, acked)  # the second is let go, but has expired
    found = await eventually(lambda: fetch(store, queue))
    assert ids(found) == [third.id]
