"""Jobs of keys without a permit wait beside the others, whatever their number (docs/adr/014)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.limits.test_limits import held, ids, none_held
from integration.samples import KINDS, acked, draft, fetch, put_raw, refusal, subjects, timed, tokens
from integration.workflows import flows
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream import contents
from ojs_engine.jetstream.api import call, delete, deleted
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.store import Store, StoreTimings
from ojs_features.all import STORE_FEATURES
from ojs_features.limits.blocked_jobs import BlockedJobTimings
from ojs_features.limits.limits import Limits
from ojs_features.limits.permits import key_scope
from ojs_features.limits.rules import LimitOverride
from ojs_features.limits.subjects import Subjects
from support.nats import NatsServer
from support.outside import after, before, clock_of, reads_of
from support.waiting import eventually

LONG_S = 60.0
"""How long a busy machine may take for what is waited for."""
MANY = 600
"""More than one look moves, with the limits of these tests."""


@pytest.fixture
def timings() -> StoreTimings:
    return StoreTimings(features=(BlockedJobTimings(at_once=400),), dispatch=DispatchTimings(cleared_s=LONG_S))


def limited(queue: str, key: str, **policy: Any) -> Job:
    priority = policy.pop("priority", 0)
    return draft(queue=queue, priority=priority, rate_limit=Raw(msgspec.json.encode({"key": key, **policy})))


async def all_aside(store: Store, queue: str) -> bool:
    """Whether every token of a queue has been put aside; has that done as a worker would."""
    return await fetch(store, queue) == [] and await tokens(store, queue) == 0


# Others of the queue


def one_key(queue: str, _number: int) -> Job:
    return limited(queue, f"{queue}.evil", concurrency=0)


def many_keys(queue: str, number: int) -> Job:
    return limited(queue, f"{queue}.{number % 200}", concurrency=0)


def one_key_that_is_busy(queue: str, _number: int) -> Job:
    return limited(queue, f"{queue}.busy", concurrency=1)


@pytest.mark.parametrize("blocked", [one_key, many_keys, one_key_that_is_busy])
@pytest.mark.parametrize("unrelated", ["without a key", "with another key"])
async def test_one_fetch_that_does_not_wait_gets_what_is_behind_many_blocked_jobs(
    store: Store, queue: str, blocked: Callable[[str, int], Job], unrelated: str
) -> None:
    await store.enqueue.push(limited(queue, f"{queue}.busy", concurrency=1))
    assert len(await fetch(store, queue)) == 1
    await store.enqueue.push_all([blocked(queue, number) for number in range(MANY)])
    job = draft(queue=queue) if unrelated == "without a key" else limited(queue, f"{queue}.open", concurrency=1)
    await store.enqueue.push(job)
    assert ids(await fetch(store, queue)) == [job.id]


async def test_jobs_are_found_while_blocked_ones_are_put_aside(store: Store, other: Store, queue: str, key: str) -> None:
    """By any gateway, and each once."""
    await store.enqueue.push_all([limited(queue, key, concurrency=0) for _ in range(MANY)])
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(20)]
    found: list[str] = []

    async def all_found() -> bool:
        some = await asyncio.gather(*(fetch(one, queue, count=2) for one in (store, other) * 5))
        found.extend(job.id for jobs in some for job in jobs)
        return len(found) >= 20

    await eventually(all_found, LONG_S)
    assert sorted(found) == sorted(ids(jobs))


async def test_a_job_behind_blocked_ones_of_a_higher_priority_is_found(store: Store, queue: str, key: str) -> None:
    await store.enqueue.push_all([limited(queue, key, concurrency=0, priority=9) for _ in range(MANY)])
    job = await store.enqueue.push(draft(queue=queue))
    assert ids(await fetch(store, queue)) == [job.id]


async def test_blocked_jobs_that_are_to_be_dropped_hold_nobody_up(store: Store, queue: str, key: str) -> None:
    dropped = [limited(queue, key, concurrency=0, on_limit="drop") for _ in range(MANY)]
    await store.enqueue.push_all(dropped)
    job = await store.enqueue.push(limited(queue, f"{key}.open", concurrency=1))
    assert ids(await fetch(store, queue, wait_ms=60_000)) == [job.id]

    async def last_is_gone() -> bool:
        await fetch(store, queue)
        return (await store.jobs.get(dropped[-1].id)).state is State.DISCARDED

    await eventually(last_is_gone, LONG_S)


async def test_who_waits_hears_of_a_job_behind_blocked_ones_when_they_are_aside(store: Store, queue: str, key: str) -> None:
    """Its key was blocked a moment ago, so it waits behind them."""
    opened = f"{key}.opened"
    await store.enqueue.push_all([limited(queue, one, concurrency=0) for one in (*[key] * MANY, opened)])
    job = await store.enqueue.push(limited(queue, opened, concurrency=1))
    found = await fetch(store, queue, wait_ms=60_000)
    assert ids(found) == [job.id]


# Order


async def move_to_late(store: Store, job: Job) -> None:
    """Have a job's token where 0.2 published it while its key was blocked."""
    ready, key = store.config.ready_stream, store.config.ready(job.queue, job.priority, "key")
    found = await contents.message(store.nats, ready, {"last_by_subj": key}, "a token")
    assert found is not None
    assert found.data.startswith(job.id.encode())
    await put_raw(store, store.config.ready(job.queue, job.priority, "late"), found.data)
    assert deleted(await delete(store.nats, ready, found.seq))


@pytest.mark.parametrize("size", [1, 4, 50])
async def test_jobs_with_and_without_keys_come_in_the_order_of_their_pushes(
    store: Store, queue: str, key: str, size: int
) -> None:
    kinds = [lambda: draft(queue=queue), lambda: limited(queue, key, concurrency=50)]
    jobs = [await store.enqueue.push(kinds[number % 3 == 0]()) for number in range(20)]
    late = await store.enqueue.push(limited(queue, key, concurrency=50))
    await move_to_late(store, late)
    jobs = [*jobs, late, *[await store.enqueue.push(kinds[number % 2]()) for number in range(10)]]
    assert len(await subjects(store, store.config.ready_stream, store.config.ready_of_queue(queue))) == 3
    found: list[str] = []
    while some := await fetch(store, queue, count=size):
        found += ids(some)
        for job in some:
            await store.jobs.change(job.id, acked)
    assert found == ids(jobs)


@pytest.mark.usefixtures("keeper")
async def test_a_key_that_is_opened_gives_all_that_waited_in_order(store: Store, queue: str, key: str) -> None:
    """More of them than one look moves."""
    await store.of(Limits).permits.override(key_scope(key), LimitOverride(concurrency=0))
    jobs = [limited(queue, key, concurrency=1_000) for _ in range(MANY)]
    await store.enqueue.push_all(jobs)
    await eventually(lambda: all_aside(store, queue), LONG_S)
    await store.of(Limits).permits.override(key_scope(key), None)
    found: list[str] = []

    async def more() -> bool:
        some = await fetch(store, queue, count=100)
        found.extend(ids(some))
        for start in range(0, len(some), 50):
            await asyncio.gather(*(store.jobs.change(job.id, acked) for job in some[start : start + 50]))
        return len(found) == MANY

    await eventually(more, LONG_S)
    assert found == ids(jobs)
    await eventually(lambda: none_held(store, key))


@timed(features=(BlockedJobTimings(at_once=20),))
@pytest.mark.usefixtures("keeper")
async def test_what_an_operator_lets_go_without_any_limit_leaves_nobody_behind(store: Store, queue: str, key: str) -> None:
    """None of these jobs holds a permit, so no end of one lets the next go."""
    jobs = [limited(queue, key, concurrency=0) for _ in range(50)]
    await store.enqueue.push_all(jobs)
    await eventually(lambda: all_aside(store, queue), LONG_S)
    await store.of(Limits).permits.override(key_scope(key), LimitOverride(concurrency=1_000))

    async def ready() -> bool:
        return await tokens(store, queue) == 50

    await eventually(ready, LONG_S)
    assert ids(await fetch(store, queue, count=50)) == ids(jobs)


# What is put aside stays aside, and is seen


async def test_a_look_leaves_blocked_jobs_alone_whose_limit_has_no_record(store: Store, queue: str, key: str) -> None:
    """It may be forgotten, or not be there yet; then what the jobs say holds."""
    await store.enqueue.push_all([limited(queue, key, concurrency=0) for _ in range(3)])
    await eventually(lambda: all_aside(store, queue), LONG_S)
    await purge(store, Subjects(store.config).limit(key_scope(key)))
    await store.of(Limits).blocked.look(key_scope(key), "", b"", store.clock.now())
    assert (await held(store, key), await tokens(store, queue)) == (3, 0)


async def test_a_key_that_a_fetch_finds_blocked_is_known_even_if_its_record_was_gone(
    store: Store, queue: str, key: str
) -> None:
    await store.enqueue.push_all([limited(queue, key, concurrency=0)])
    await purge(store, Subjects(store.config).limit(key_scope(key)))
    await eventually(lambda: all_aside(store, queue), LONG_S)
    found = await store.of(Limits).permits.inspect(key_scope(key))
    assert found is not None
    assert found.policy.concurrency == 0


async def purge(store: Store, subject: str) -> None:
    answer = await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": subject})
    assert "error" not in answer


async def test_batches_let_their_keys_be_looked_at(store: Store, queue: str, key: str) -> None:
    await store.enqueue.push_all([limited(queue, f"{key}.{number}", concurrency=number) for number in range(3)])
    assert [await concurrency(store, f"{key}.{number}") for number in range(3)] == [0, 1, 2]


async def test_workflows_let_the_keys_of_all_their_steps_be_looked_at(store: Store, queue: str, key: str) -> None:
    steps = [
        flows.job(f"step.n{number}", queue, rate_limit={"key": f"{key}.{number}", "concurrency": number}) for number in range(3)
    ]
    await flows.create(store, {"type": "chain", "steps": steps})
    assert [await concurrency(store, f"{key}.{number}") for number in range(3)] == [0, 1, 2]


async def concurrency(store: Store, key: str) -> int | None:
    found = await store.of(Limits).permits.inspect(key_scope(key))
    return None if found is None else found.policy.concurrency


async def test_a_key_is_noted_again_after_a_reset(own_server: Callable[..., NatsServer]) -> None:
    with own_server() as server:
        store = await Store.open(server.url, StoreConfig(), role="gateway", features=STORE_FEATURES, test_mode=True)
        try:
            for _ in range(2):
                assert await store.of(Limits).permits.known() == []
                await store.enqueue.push(limited("q", "k", concurrency=5))
                assert await store.of(Limits).permits.known() == [key_scope("k")]
                await store.reset(KINDS)
        finally:
            await store.close()


# Many gateways at once


async def test_one_limit_serves_many_gateways_at_once(
    shared_nats_server: NatsServer, open_store: OpenStore, store: Store, queue: str, key: str
) -> None:
    """They all swap one record at the same time. A fetch that has some doesn't wait for what others have in hand."""
    stores = [store, *[await open_store(shared_nats_server.url, namespace=store.config.namespace) for _ in range(5)]]
    jobs = [limited(queue, key, concurrency=120) for _ in range(120)]
    await store.enqueue.push_all(jobs)
    served = await asyncio.gather(*(fetch(one, queue, count=5, wait_ms=60_000) for one in stores * 4))
    assert all(served)
    found = [job.id for some in served for job in some]

    async def all_found() -> bool:
        found.extend(ids(await fetch(store, queue, count=5)))
        return len(found) >= 120

    await eventually(all_found, LONG_S)
    assert sorted(found) == sorted(ids(jobs))


async def test_a_swap_that_others_always_win_gives_up_within_its_budget(store: Store, other: Store, key: str) -> None:
    tries = 0

    async def others_win() -> None:
        nonlocal tries
        tries += 1
        await other.of(Limits).permits.override(key_scope(key), LimitOverride(concurrency=tries))

    with (
        after(store.nats, reads_of(Subjects(store.config).limit(key_scope(key))), others_win, times=1_000),
        refusal("backend_unavailable"),
    ):
        await store.of(Limits).permits.override(key_scope(key), None)
    assert 0 < tries < 60  # without a pause there would be hundreds


# When a job started


async def test_a_job_starts_when_its_permit_was_granted(store: Store, queue: str, key: str) -> None:
    """However long it took to be: starts keep to the rate as the limit counts them."""
    await store.enqueue.push(limited(queue, key, rate={"limit": 5, "period": "PT1M"}))

    async def time_passes() -> None:
        clock_of(store).ahead_ms += 50

    with before(store.nats, reads_of(Subjects(store.config).limit(key_scope(key))), time_passes) as asked:
        [job] = await fetch(store, queue)
    assert asked
    _, record = await store.of(Limits).permits.read(key_scope(key))
    assert [job.started_at] == [at for at, _ in record.grants]


async def test_what_was_claimed_too_long_ago_is_not_handed_out(store: Store, queue: str) -> None:
    """The process stood still between the claim and the answer: by now the job is somebody else's, or will be."""
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(2)]

    async def time_passes() -> None:
        clock_of(store).ahead_ms = 60_000

    with after(store.nats, store.config.job(jobs[0].id), time_passes) as claimed:
        assert await fetch(store, queue, lease_ms=30_000, wait_ms=0) == []
    assert claimed
    assert [(await store.jobs.get(job.id)).state for job in jobs] == [State.ACTIVE, State.AVAILABLE]
    clock_of(store).ahead_ms = 0
    assert ids(await fetch(store, queue, lease_ms=120_000)) == [jobs[1].id]
