"""The locks of unique jobs against a real server, with several stores for several gateways."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace
from structlog.testing import capture_logs

from integration.conftest import OpenStore
from integration.samples import (
    acked,
    draft,
    failed,
    fetch,
    holding,
    losing_answers,
    message,
    once,
    put_raw,
    refusal,
    timed,
    timers,
    unreachable,
)
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.domain.transitions import RetryOverride
from ojs_engine.domain.unique import keyed
from ojs_engine.store.records.write_timings import WriteTimings
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.store import Store
from ojs_features.unique.locks import Lock, encode_lock
from ojs_features.unique.timings import LockTimings
from ojs_features.unique.uniqueness import Uniqueness
from support.examples import examples
from support.nats import NatsServer
from support.outside import before, clock_of
from support.waiting import PATIENCE_S, answered, eventually

YOUNG_MS = LockTimings().young_ms
REJECT: dict[str, Any] = {"keys": ["type", "args"]}


def unique(args: Any = (1,), policy: dict[str, Any] | None = None, **members: Any) -> Job:
    """A draft with a policy; by default it is refused if there is another one of its type and args."""
    sent = Raw(msgspec.json.encode(REJECT if policy is None else policy))
    return keyed(draft(args=Raw(msgspec.json.encode(args)), unique=sent, **members))


def under(on_conflict: str, **more: Any) -> dict[str, Any]:
    return REJECT | {"on_conflict": on_conflict} | more


async def lock_of(store: Store, job: Job) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of the lock of a job's fingerprint; empty if there is none."""
    assert job.unique_key is not None
    found = await message(store, store.config.record("unique", job.unique_key))
    return (msgspec.json.decode(found[0]), found[1]) if found is not None and found[0] else ({}, {})


async def states(store: Store, drafts: Sequence[Job]) -> Counter[State | None]:
    found = await store.records.many([one.id for one in drafts])
    return Counter(stored.job.state if stored.job else None for stored in found.values())


async def finished(store: Store, queue: str) -> Job:
    """Fetch the only job of a queue and complete it."""
    (job,) = await fetch(store, queue)
    return (await store.jobs.change(job.id, acked)).after


async def discarded(store: Store, queue: str, job: Job) -> Job:
    """Push a job that has one attempt, and fail it."""
    await store.enqueue.push(replace(job, retry=Retry(max_attempts=1, on_exhaustion="dead_letter")))
    (claimed,) = await fetch(store, queue)
    return (await store.jobs.change(claimed.id, failed)).after


def retried(job: Job, moment: transitions.Moment) -> transitions.Transition:
    return transitions.retry_discarded(job, RetryOverride(), moment)


async def until_released(store: Store, job: Job) -> dict[str, str]:
    async def has_ttl() -> dict[str, str] | None:
        _, headers = await lock_of(store, job)
        return headers if "Nats-TTL" in headers else None

    headers = await eventually(has_ttl)
    assert headers is not None
    return headers


@contextmanager
def refused_only_for(*codes: str) -> Iterator[None]:
    try:
        yield
    except OjsError as error:
        if error.code not in codes:
            raise


def outcome(result: Job | BaseException) -> str:
    if isinstance(result, OjsError):
        return result.code
    assert isinstance(result, Job), result
    return "pushed"


# The strategies


async def test_a_duplicate_is_refused_and_says_of_what(store: Store, other: Store, queue: str) -> None:
    first = await store.enqueue.push(unique([queue], queue=queue))
    with pytest.raises(OjsError) as caught:
        await other.enqueue.push(unique([queue], queue=queue))
    assert caught.value.code == "duplicate"
    assert caught.value.details == {
        "existing_job_id": first.id,
        "existing_job_state": "available",
        "unique_key": first.unique_key,
    }
    assert [job.id for job in await fetch(store, queue, count=10)] == [first.id]


async def test_other_args_are_another_key(store: Store, queue: str) -> None:
    for number in range(3):
        await store.enqueue.push(unique([queue, number], queue=queue))
    assert len(await fetch(store, queue, count=10)) == 3


async def test_ignore_answers_with_the_existing_job_and_stores_nothing(store: Store, other: Store, queue: str) -> None:
    first = await store.enqueue.push(unique([queue], queue=queue))
    second = unique([queue], under("ignore"), queue=queue)
    assert (await other.enqueue.push(second)).id == first.id
    with refusal("not_found"):
        await store.jobs.get(second.id)


async def test_replace_cancels_and_creates_at_once(store: Store, other: Store, queue: str) -> None:
    first = await store.enqueue.push(unique([queue], queue=queue))
    second = await other.enqueue.push(unique([queue], under("replace"), queue=queue))
    old = await store.jobs.get(first.id)
    assert old.state is State.CANCELLED
    assert old.transitions[-1].reason == f"replaced by job {second.id}"
    assert [job.id for job in await fetch(store, queue, count=10)] == [second.id]


async def test_an_active_job_is_replaced_and_its_worker_hears_of_it(store: Store, queue: str) -> None:
    first = await store.enqueue.push(unique([queue], queue=queue))
    await fetch(store, queue, worker="w1")
    await store.enqueue.push(unique([queue], under("replace"), queue=queue))
    assert (await store.jobs.extend([first.id], "w1", None)).cancelled == [first.id]
    with refusal("conflict"):
        await store.jobs.change(first.id, acked)


async def test_replace_except_schedule_keeps_the_time_of_a_scheduled_job(store: Store, queue: str) -> None:
    first = unique([queue], queue=queue, scheduled_at=store.clock.now() + 60_000, verbatim={"scheduled_at": "then"})
    await store.enqueue.push(first)
    policy = under("replace_except_schedule")
    later = unique([queue], policy, queue=queue, scheduled_at=store.clock.now() + 90_000, verbatim={"scheduled_at": "later"})
    second = await store.enqueue.push(later)
    assert (second.state, second.scheduled_at) == (State.SCHEDULED, first.scheduled_at)
    assert second.verbatim == {"scheduled_at": "then"}
    assert len(await timers(store, second.id)) == 1
    assert await timers(store, first.id) == []
    third = await store.enqueue.push(unique([queue], under("replace"), queue=queue))
    assert third.state is State.AVAILABLE
    fourth = await store.enqueue.push(unique([queue], policy, queue=queue))
    assert fourth.state is State.AVAILABLE


async def test_a_finished_job_that_counts_is_superseded_not_cancelled(store: Store, queue: str) -> None:
    policy = under("replace", states=["available", "completed"])
    first = await store.enqueue.push(unique([queue], policy, queue=queue))
    await finished(store, queue)
    second = await store.enqueue.push(unique([queue], policy, queue=queue))
    assert (await store.jobs.get(first.id)).state is State.COMPLETED
    assert (await store.jobs.get(second.id)).state is State.AVAILABLE


async def test_a_unique_push_repeated_with_its_id_is_a_duplicate_under_every_strategy(store: Store, queue: str) -> None:
    for strategy in ("reject", "replace", "replace_except_schedule"):
        job = unique([queue, strategy], under(strategy), queue=queue)
        await store.enqueue.push(job)
        with refusal("duplicate"):
            await store.enqueue.push(job)
        assert (await store.jobs.get(job.id)).state is State.AVAILABLE


# What counts


async def test_a_state_that_is_not_listed_is_no_duplicate(store: Store, queue: str) -> None:
    await store.enqueue.push(unique([queue], queue=queue))
    await finished(store, queue)
    await store.enqueue.push(unique([queue], queue=queue))


async def test_a_listed_end_is_a_duplicate(store: Store, queue: str) -> None:
    policy = under("reject", states=["available", "completed"])
    await store.enqueue.push(unique([queue], policy, queue=queue))
    await finished(store, queue)
    with refusal("duplicate"):
        await store.enqueue.push(unique([queue], policy, queue=queue))


async def test_a_job_that_waits_for_its_retry_is_a_duplicate_and_discarding_it_is_not(store: Store, queue: str) -> None:
    await store.enqueue.push(unique([queue], queue=queue, retry=Retry(max_attempts=2, initial_interval_ms=60_000)))
    (job,) = await fetch(store, queue)
    assert (await store.jobs.change(job.id, failed)).after.state is State.RETRYABLE
    with refusal("duplicate"):
        await store.enqueue.push(unique([queue], queue=queue))
    await store.jobs.change(job.id, transitions.cancel)
    await store.enqueue.push(unique([queue], queue=queue))


async def test_the_period_ends_uniqueness_while_the_job_waits(store: Store, queue: str) -> None:
    policy = under("reject", period="PT1S")
    first = await store.enqueue.push(unique([queue], policy, queue=queue))
    with refusal("duplicate"):
        await store.enqueue.push(unique([queue], policy, queue=queue))
    await eventually(lambda: store.clock.now() > first.created_at + 1_000)
    second = await store.enqueue.push(unique([queue], policy, queue=queue))
    assert len(await fetch(store, queue, count=10)) == 2
    assert second.id != first.id


async def test_an_earlier_job_that_lives_on_counts_again_when_its_state_does(store: Store, queue: str) -> None:
    """Two jobs may live under one fingerprint when `states` is narrow; the lock of the younger one remembers the older."""
    policy = under("reject", states=["available"])
    elder = await store.enqueue.push(unique([queue], policy, queue=queue))
    (claimed,) = await fetch(store, queue)
    younger = await store.enqueue.push(unique([queue], policy, queue=queue))
    await finished(store, queue)
    await store.jobs.change(claimed.id, lambda job, moment: transitions.nack(job, REQUEUE, transitions.JobHolder(), moment))
    with pytest.raises(OjsError) as caught:
        await store.enqueue.push(unique([queue], policy, queue=queue))
    assert caught.value.details["existing_job_id"] == elder.id
    assert younger.id != elder.id


REQUEUE = transitions.Failure(message="not now", requeue=True)


# Locks


async def test_a_lock_gets_its_time_to_live_with_the_end_of_its_job(store: Store, other: Store, queue: str) -> None:
    job = await store.enqueue.push(unique([queue], queue=queue))
    lock, headers = await lock_of(store, job)
    assert (lock["owner"], lock["op"]) == (job.id, job.lock)
    assert "Nats-TTL" not in headers
    await finished(other, queue)
    headers = await until_released(store, job)
    assert headers["Nats-TTL"] == f"{7 * 86_400 + 60}s"


async def test_the_lock_goes_to_the_earlier_owner_that_outlives_its_successor(store: Store, queue: str) -> None:
    policy = under("reject", states=["available"])
    elder = await store.enqueue.push(unique([queue], policy, queue=queue))
    (claimed,) = await fetch(store, queue)
    await store.enqueue.push(unique([queue], policy, queue=queue))
    await finished(store, queue)

    async def handed_over() -> bool:
        lock, headers = await lock_of(store, elder)
        return lock["owner"] == elder.id and "Nats-TTL" not in headers

    await eventually(handed_over)
    await store.jobs.change(claimed.id, acked)
    await until_released(store, elder)


async def test_jobs_that_are_not_unique_leave_locks_alone(store: Store, queue: str) -> None:
    with before(store.nats, lambda *asked: store.config.record("unique", "") in f"{asked}", fails, times=1_000) as met:
        await store.enqueue.push(draft(queue=queue))
        await finished(store, queue)
    assert met == []


async def fails() -> None:
    raise AssertionError("a lock was looked at")


async def test_an_id_that_is_taken_gives_the_lock_back(store: Store, queue: str) -> None:
    plain = await store.enqueue.push(draft(queue=queue))
    job = unique([queue], queue=queue, id=plain.id)
    with refusal("duplicate"):
        await store.enqueue.push(job)
    _, headers = await lock_of(store, job)
    assert headers == {} or headers["Nats-TTL"] == "1s"
    await store.enqueue.push(unique([queue], queue=queue))


async def test_a_record_that_is_too_large_gives_the_lock_back(store: Store, queue: str) -> None:
    large = unique([queue], queue=queue, meta=Raw(b'{"a":"' + b"x" * 9_000_000 + b'"}'))
    with refusal("envelope_too_large"):
        await store.enqueue.push(large)
    _, headers = await lock_of(store, large)
    assert headers == {} or headers["Nats-TTL"] == "1s"
    await store.enqueue.push(unique([queue], queue=queue))


# Crashes and latecomers


async def test_a_push_that_died_between_lock_and_record_blocks_nothing_for_long(store: Store, other: Store, queue: str) -> None:
    dead = unique([queue], queue=queue)
    await take_lock(store, dead, age_ms=0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    pushed = await other.enqueue.push(unique([queue], queue=queue))
    assert YOUNG_MS / 1_000 - 1 < loop.time() - began < YOUNG_MS / 1_000 + 30
    assert [job.id for job in await fetch(store, queue, count=10)] == [pushed.id]


@timed(features=(LockTimings(young_ms=0),))
async def test_a_lock_of_a_batch_is_never_taken_for_abandoned(store: Store, other: Store, queue: str) -> None:
    """It is stored together with its job, so nobody finds it without, however long the batch took."""
    batches = [[draft(queue=queue), unique([queue], under("replace"), queue=queue)] for _ in range(10)]
    with capture_logs() as logs:
        await asyncio.gather(*map(store.enqueue.push_all, batches[::2]), *map(other.enqueue.push_all, batches[1::2]))
    assert [line for line in logs if "fenced" in line["event"]] == []
    assert (await states(store, [batch[1] for batch in batches]))[State.AVAILABLE] == 1


@timed(features=(LockTimings(young_ms=3_600_000),))
@pytest.mark.parametrize("on_conflict", ["reject", "ignore", "replace"])
@pytest.mark.usefixtures("own_stores")
async def test_a_push_does_not_wait_for_the_owner_of_a_lock_that_is_deleted(
    store: Store, other: Store, queue: str, on_conflict: str
) -> None:
    del store.committer.followers["lock"]  # it dies before it lets the lock go
    first = await store.enqueue.push(unique([queue], queue=queue))
    await store.jobs.change(first.id, transitions.cancel)
    await store.jobs.change(first.id, transitions.remove)
    async with asyncio.timeout(60):
        second = await other.enqueue.push(unique([queue], under(on_conflict), queue=queue))
    assert (await store.jobs.get(second.id)).state is State.AVAILABLE
    assert (await lock_of(store, second))[0]["owner"] == second.id

    # The same id once more: the tombstone is of a life before, so whoever has the lock now may be about to store it.
    again = replace(first, transitions=(), lock=None)
    lock = encode_lock(Lock(again.id, "somebody-is-at-it", store.clock.now()))
    assert again.unique_key is not None
    await put_raw(store, store.config.record("unique", again.unique_key), lock)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await other.enqueue.push(unique([queue], under(on_conflict), queue=queue))


async def test_a_push_that_sleeps_between_lock_and_record_is_fenced(store: Store, other: Store, queue: str) -> None:
    sleeper = unique([queue], queue=queue)
    moment = await take_lock(store, sleeper, age_ms=YOUNG_MS)
    pushed = await other.enqueue.push(unique([queue], queue=queue))
    late = transitions.push(replace(sleeper, lock=moment.op), moment)
    with pytest.raises(Conflict):
        await store.committer.commit(late, 0, moment.op)
    assert [job.id for job in await fetch(store, queue, count=10)] == [pushed.id]
    with refusal("not_found"):
        await store.jobs.get(sleeper.id)


async def test_a_push_that_wakes_up_starts_over_and_finds_the_duplicate(store: Store, other: Store, queue: str) -> None:
    """The push itself, not only its write: its record is refused by the fence, so it looks at the lock again."""
    sleeper = unique([queue], queue=queue)

    async def sleeps() -> None:
        clock_of(other).ahead_ms = YOUNG_MS
        await other.enqueue.push(unique([queue], queue=queue))

    with before(store.nats, store.config.job(sleeper.id), sleeps) as slept, refusal("duplicate"):
        await store.enqueue.push(sleeper)
    assert slept
    assert len(await fetch(store, queue, count=10)) == 1


async def test_a_retry_that_sleeps_between_lock_and_record_is_fenced(store: Store, other: Store, queue: str) -> None:
    dead = await discarded(store, queue, unique([queue], queue=queue))
    await until_released(store, dead)
    found = await store.records.leader(dead.id)
    moment = await take_lock(store, dead, age_ms=YOUNG_MS)
    pushed = await other.enqueue.push(unique([queue], queue=queue))
    late = retried(dead, moment)
    with pytest.raises(Conflict):
        await store.committer.commit(late, found.sequence, moment.op)
    assert [job.id for job in await fetch(store, queue, count=10)] == [pushed.id]
    again = await store.jobs.get(dead.id)
    assert replace(again, amended=None) == dead
    record = await message(store, store.config.job(dead.id))
    assert record is not None
    assert int(record[1]["Nats-TTL"].rstrip("s")) > 179 * 86_400


async def test_a_release_that_comes_late_leaves_the_lock_of_a_retried_job_alone(store: Store, other: Store, queue: str) -> None:
    """A lock with a time to live whose job lives on would let a duplicate in."""
    late: list[tuple[Job, int]] = []
    store.committer.followers["lock"] = lambda ending, _: late.append((ending.job, ending.ttl_s or 0))
    dead = await discarded(store, queue, unique([queue], queue=queue))
    await other.jobs.revive(dead.id, retried)
    ((job, ttl_s),) = late
    await store.of(Uniqueness).locks._release(job, ttl_s)
    lock, headers = await lock_of(store, dead)
    assert lock["owner"] == dead.id
    assert "Nats-TTL" not in headers


async def test_answers_that_are_lost_leave_one_job(store: Store, other: Store, queue: str) -> None:
    job = unique([queue], queue=queue)
    with losing_answers(store.nats, store.config.record("unique", "")), losing_answers(store.nats, store.config.job(job.id)):
        await store.enqueue.push(job)
    with refusal("duplicate"):
        await other.enqueue.push(unique([queue], queue=queue))
    assert [found.id for found in await fetch(store, queue, count=10)] == [job.id]


@timed(writes=WriteTimings(deadline_s=0.6))
async def test_a_lock_that_could_not_be_stored_leaves_nothing(store: Store, queue: str) -> None:
    with unreachable(store.nats, store.config.record("unique", ""), times=100), refusal("backend_unavailable"):
        await store.enqueue.push(unique([queue], queue=queue))
    assert await fetch(store, queue) == []
    await store.enqueue.push(unique([queue], queue=queue))


async def take_lock(store: Store, job: Job, *, age_ms: int) -> transitions.Moment:
    """The first half of a push or retry; `age_ms` ago."""
    now = store.clock.moment()
    standing = await store.of(Uniqueness).look(job)
    moment = transitions.Moment(now.now - age_ms, now.op, now.chance)
    await store.of(Uniqueness)._writer.write(store.of(Uniqueness).claim(job, standing, moment))
    return now


# Manual retry


async def test_a_manual_retry_takes_the_lock_or_is_refused(store: Store, other: Store, queue: str) -> None:
    dead = await discarded(store, queue, unique([queue], queue=queue))
    heir = await other.enqueue.push(unique([queue], queue=queue))
    with pytest.raises(OjsError) as caught:
        await store.jobs.revive(dead.id, retried)
    assert (caught.value.code, caught.value.details["existing_job_id"]) == ("duplicate", heir.id)
    await finished(store, queue)
    revived = (await store.jobs.revive(dead.id, retried)).after
    lock, headers = await lock_of(store, dead)
    assert (lock["owner"], lock["op"]) == (dead.id, revived.lock)
    assert "Nats-TTL" not in headers
    with refusal("duplicate"):
        await other.enqueue.push(unique([queue], queue=queue))


@timed(features=(LockTimings(young_ms=3_600_000),))
async def test_of_two_retries_the_one_that_loses_gives_the_lock_back(store: Store, other: Store, queue: str) -> None:
    """Its op would never stand in a record, so all others of the fingerprint would wait until it can be fenced."""
    dead = await discarded(store, queue, unique([queue], queue=queue))
    await until_released(store, dead)
    record = store.config.job(dead.id)
    with holding(store.nats, record) as winning, holding(other.nats, record) as losing:
        winner = asyncio.create_task(store.jobs.revive(dead.id, retried))
        await winning.met(winner)
        loser = asyncio.create_task(other.jobs.revive(dead.id, retried))
        await losing.met(loser)
        winning.go.set()
        revived = (await winner).after
        losing.go.set()
        with refusal("conflict"):
            await loser
    lock, _ = await lock_of(store, dead)
    assert (lock["owner"], lock["op"]) == (dead.id, revived.lock)
    await finished(store, queue)
    async with asyncio.timeout(60):
        await other.enqueue.push(unique([queue], queue=queue))


async def test_a_retry_with_other_args_takes_the_lock_of_its_new_fingerprint(store: Store, queue: str) -> None:
    dead = await discarded(store, queue, unique([queue], queue=queue))
    await store.enqueue.push(unique([queue, 2], queue=queue))

    def decide(job: Job, moment: transitions.Moment) -> transitions.Transition:
        return transitions.retry_discarded(job, RetryOverride(args=Raw(msgspec.json.encode([queue, 2]))), moment)

    with refusal("duplicate"):
        await store.jobs.revive(dead.id, decide)


# Races

PUSHES = examples(500, least=60, costly=True)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["reject", "ignore", "replace", "replace_except_schedule"])
async def test_of_many_concurrent_pushes_through_several_gateways_one_job_lives(
    shared_nats_server: NatsServer, open_store: OpenStore, namespace: str, queue: str, strategy: str
) -> None:
    stores = [await open_store(shared_nats_server.url, namespace=namespace) for _ in range(4)]
    drafts = [unique([queue], under(strategy), queue=queue) for _ in range(PUSHES)]
    pushes = (answered(stores[index % 4].enqueue.push, job) for index, job in enumerate(drafts))
    results = await asyncio.gather(*pushes, return_exceptions=True)
    answers = Counter(outcome(result) for result in results)
    found = await states(stores[0], drafts)
    assert found[State.AVAILABLE] == 1
    if strategy == "reject":
        assert answers == {"pushed": 1, "duplicate": PUSHES - 1}
        assert found[None] == PUSHES - 1
    elif strategy == "ignore":
        assert answers == {"pushed": PUSHES}
        assert len({result.id for result in results if isinstance(result, Job)}) == 1
    else:
        assert answers == {"pushed": PUSHES}
        assert found[State.CANCELLED] == PUSHES - 1
    assert len(await fetch(stores[0], queue, count=10)) == 1


async def test_pushes_batches_retries_and_workers_together_never_have_two_live_jobs(
    shared_nats_server: NatsServer, open_store: OpenStore, namespace: str, queue: str
) -> None:
    """Every moment of every live job's life is checked afterwards, from the logs of all jobs."""
    stores = [await open_store(shared_nats_server.url, namespace=namespace) for _ in range(3)]
    chance = random.Random(7)
    drafts: list[Job] = []
    created: list[Job] = []
    revived: list[str] = []

    def going_on() -> bool:
        return len(created) < 30 or not revived

    async def pusher(store: Store) -> None:
        while going_on():
            strategy = chance.choice(["reject", "ignore", "replace"])
            job = unique([queue], under(strategy), queue=queue, retry=once())
            drafts.append(job)
            with refused_only_for("duplicate", "backend_unavailable"):
                if chance.random() < 0.3:
                    _, pushed = await store.enqueue.push_all([draft(queue=f"{queue}-more"), job])
                else:
                    pushed = await store.enqueue.push(job)
                if pushed.id == job.id:
                    created.append(job)

    async def worker(store: Store) -> None:
        while going_on():
            for job in await fetch(store, queue, wait_ms=50):
                with refused_only_for("conflict"):
                    await store.jobs.change(job.id, chance.choice([acked, failed]))

    async def operator(store: Store) -> None:
        while going_on():
            await asyncio.sleep(0.01)  # its pace: with more of its retries nothing else would get on
            for job in chance.sample(drafts, min(len(drafts), 5)):
                with refused_only_for("conflict", "duplicate", "not_found", "backend_unavailable"):
                    await store.jobs.revive(job.id, retried)
                    revived.append(job.id)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        for store in stores:
            for work in (pusher, pusher, worker, operator):
                group.create_task(work(store))
    found = await store_all(stores[0], drafts)
    assert {job.id for job in created} <= {job.id for job in found}
    assert any(job.generation for job in found)
    assert overlaps(found) == []


async def store_all(store: Store, drafts: Sequence[Job]) -> list[Job]:
    stored = await store.records.many([job.id for job in drafts])
    return [one.job for one in stored.values() if one.job is not None]


def overlaps(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """Pairs of jobs that lived at the same time, by the clock of the processes that wrote their logs (one machine here)."""
    lives: list[tuple[int, int, str]] = []
    for job in jobs:
        born: int | None = None
        for entry in job.transitions:
            alive = entry.after not in {State.COMPLETED, State.CANCELLED, State.DISCARDED}
            if alive and born is None:
                born = entry.at
            elif not alive and born is not None:
                lives.append((born, entry.at, job.id))
                born = None
        if born is not None:
            lives.append((born, 1 << 62, job.id))
    lives.sort()
    found = []
    for (_, end, first), (start, _, second) in pairwise(lives):
        if start < end - CLOCK_MS:
            found.append((first, second))
    return found


CLOCK_MS = 30
"""What the stores' clocks may differ by, and what a transition is stamped ahead of being stored."""


def test_the_check_sees_two_live_jobs() -> None:
    def life(start: int, end: int) -> Job:
        log = transitions.push(draft(), transitions.Moment(start, f"a{start}")).job
        return transitions.cancel(log, transitions.Moment(end, f"b{end}")).job

    assert overlaps([life(0, 100), life(100, 200)]) == []
    assert len(overlaps([life(0, 100), life(50, 200)])) == 1
