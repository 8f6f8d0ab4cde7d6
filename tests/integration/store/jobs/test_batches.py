"""Batches against a real server: all or none, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from integration.conftest import OpenStore
from integration.samples import (
    draft,
    due_subjects,
    fetch,
    holding,
    losing_answers,
    new_id,
    refusal,
    subjects,
    timed,
    timers,
    tokens,
    unreachable,
)
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.due.timekeeping import Timekeeper
from ojs_engine.jetstream.subjects import REST
from ojs_engine.store.records.write_timings import WriteTimings
from ojs_engine.store.store import Store
from support.nats import NatsServer
from support.waiting import eventually


def many(number: int, queue: str, **members: Any) -> list[Job]:
    return [draft(queue=queue, **members) for _ in range(number)]


def unique(args: Any, on_conflict: str = "reject", **members: Any) -> Job:
    policy = {"keys": ["type", "args"], "on_conflict": on_conflict}
    return keyed(draft(args=Raw(msgspec.json.encode(args)), unique=Raw(msgspec.json.encode(policy)), **members))


async def nothing_of(store: Store, drafts: list[Job]) -> bool:
    found = await store.records.many([one.id for one in drafts])
    return all(stored.sequence == 0 for stored in found.values())


async def test_jobs_are_stored_and_handed_out_in_the_order_of_the_batch(store: Store, other: Store, queue: str) -> None:
    drafts = many(1_200, queue)
    pushed = await store.enqueue.push_all(drafts)
    assert [job.id for job in pushed] == [one.id for one in drafts]
    assert {job.state for job in pushed} == {State.AVAILABLE}
    fetched = await fetch(other, queue, count=1_200)
    assert [job.id for job in fetched] == [one.id for one in drafts]


async def test_every_member_may_be_of_another_kind(store: Store, queue: str) -> None:
    later = store.clock.now() + 60_000
    drafts = [
        draft(queue=queue, priority=5),
        draft(queue=queue, scheduled_at=later),
        draft(queue=queue, state=State.PENDING),
        draft(queue=f"{queue}.other", expires_at=later),
    ]
    pushed = await store.enqueue.push_all(drafts)
    assert [job.state for job in pushed] == [State.AVAILABLE, State.SCHEDULED, State.PENDING, State.AVAILABLE]
    assert [len(await timers(store, job.id)) for job in pushed] == [0, 1, 0, 1]
    assert [job.priority for job in await fetch(store, queue, count=9)] == [5]
    assert [job.id for job in await fetch(store, f"{queue}.other", count=9)] == [drafts[3].id]


async def test_a_batch_that_is_stored_after_its_timers_have_fired_loses_none(store: Store, other: Store, queue: str) -> None:
    async def unasked(worker: str, now: int) -> Any:
        raise AssertionError((worker, now))

    keeper = Timekeeper(other, "scheduler", unasked)
    await keeper.start()
    delayed = draft(queue=queue, scheduled_at=store.clock.now() + 1_500)
    try:
        with holding(store.nats, delayed.id) as held:
            pushing = asyncio.create_task(store.enqueue.push_all([*many(1, f"{queue}.other", state=State.PENDING), delayed]))
            await held.met(pushing)

            async def let_go() -> bool:
                return not await timers(other, delayed.id) and not await due_subjects(other, delayed.id)

            await eventually(let_go)
            with unreachable(store.nats, store.config.timer(delayed.id, ""), times=2) as refused:
                held.go.set()
                await pushing
            assert len(refused) == 2

        async def there() -> bool:
            return [job.id for job in await fetch(other, queue)] == [delayed.id]

        await eventually(there)
    finally:
        await keeper.stop()


async def test_a_taken_id_refuses_the_whole_batch_and_leaves_nothing(store: Store, queue: str) -> None:
    taken = await store.enqueue.push(draft(queue=f"{queue}.taken"))
    delayed = draft(queue=queue, scheduled_at=store.clock.now() + 60_000)
    drafts = [*many(3, queue), delayed, draft(queue=queue, id=taken.id)]
    with pytest.raises(OjsError) as caught:
        await store.enqueue.push_all(drafts)
    assert (caught.value.code, caught.value.details["index"]) == ("duplicate", 4)
    assert caught.value.details["existing_job_id"] == taken.id
    assert await nothing_of(store, drafts[:4])
    assert await tokens(store, queue) == 0

    async def timer_is_gone() -> bool:
        return await timers(store, delayed.id) == []

    await eventually(timer_is_gone)


async def test_one_id_twice_is_refused_with_the_second_place(store: Store, queue: str) -> None:
    one = new_id()
    with pytest.raises(OjsError) as caught:
        await store.enqueue.push_all([draft(id=one, queue=queue), draft(queue=queue), draft(id=one, queue=queue)])
    assert (caught.value.code, caught.value.details) == ("duplicate", {"index": 2, "existing_index": 0})


@pytest.mark.parametrize("on_conflict", ["reject", "replace"])
async def test_two_of_one_fingerprint_name_the_first_by_its_place_since_it_is_no_job(
    store: Store, queue: str, on_conflict: str
) -> None:
    with pytest.raises(OjsError) as caught:
        await store.enqueue.push_all([draft(queue=queue), *(unique([queue], on_conflict, queue=queue) for _ in range(2))])
    details = caught.value.details
    assert (caught.value.code, details["index"], details["existing_index"]) == ("duplicate", 2, 1)
    assert "existing_job_id" not in details


async def test_an_id_whose_job_is_gone_may_be_used_again(store: Store, queue: str) -> None:
    job = await store.enqueue.push(draft(queue=queue))
    (claimed,) = await fetch(store, queue)
    await store.jobs.change(claimed.id, transitions.cancel)
    await store.jobs.change(claimed.id, transitions.remove)
    again = await store.enqueue.push_all([draft(queue=queue), draft(queue=queue, id=job.id)])
    assert [job.id for job in await fetch(store, queue, count=9)] == [job.id for job in again]


# Unique members


async def test_a_duplicate_refuses_the_whole_batch(store: Store, queue: str) -> None:
    existing = await store.enqueue.push(unique([queue], queue=queue))
    drafts = [*many(2, queue), unique([queue], queue=queue)]
    with pytest.raises(OjsError) as caught:
        await store.enqueue.push_all(drafts)
    assert (caught.value.code, caught.value.details["index"]) == ("duplicate", 2)
    assert caught.value.details["existing_job_id"] == existing.id
    assert await nothing_of(store, drafts)


async def test_two_members_of_one_key_exclude_each_other(store: Store, queue: str) -> None:
    for strategy in ("reject", "replace", "replace_except_schedule"):
        drafts = [unique([queue, strategy], strategy, queue=queue), unique([queue, strategy], strategy, queue=queue)]
        with pytest.raises(OjsError) as caught:
            await store.enqueue.push_all(drafts)
        assert (caught.value.code, caught.value.details["index"]) == ("duplicate", 1)
        assert await nothing_of(store, drafts)
    pair = [unique([queue], "ignore", queue=queue), unique([queue], "ignore", queue=queue)]
    assert [job.id for job in await store.enqueue.push_all(pair)] == [pair[0].id, pair[0].id]


async def test_members_ignore_and_replace_what_exists(store: Store, queue: str) -> None:
    ignored = await store.enqueue.push(unique([queue, 1], queue=queue))
    replaced = await store.enqueue.push(unique([queue, 2], queue=queue))
    drafts = [unique([queue, 1], "ignore", queue=queue), unique([queue, 2], "replace", queue=queue), draft(queue=queue)]
    pushed = await store.enqueue.push_all(drafts)
    assert [job.id for job in pushed] == [ignored.id, drafts[1].id, drafts[2].id]
    assert (await store.jobs.get(replaced.id)).state is State.CANCELLED
    with refusal("duplicate"):
        await store.enqueue.push(unique([queue, 2], queue=queue))


async def test_of_batches_that_race_for_a_key_one_is_stored(
    shared_nats_server: NatsServer, open_store: OpenStore, namespace: str, queue: str
) -> None:
    stores = [await open_store(shared_nats_server.url, namespace=namespace) for _ in range(3)]
    batches = [[draft(queue=queue), unique([queue], queue=queue)] for _ in range(30)]
    pushes = (stores[index % 3].enqueue.push_all(batch) for index, batch in enumerate(batches))
    results = await asyncio.gather(*pushes, return_exceptions=True)
    assert sum(isinstance(result, list) for result in results) == 1
    assert {result.code for result in results if isinstance(result, OjsError)} == {"duplicate"}
    assert len(await fetch(stores[0], queue, count=100)) == 2


async def test_batches_that_replace_one_job_take_turns(store: Store, queue: str) -> None:
    """Without turns most of them meet conflicts until they give up."""
    batches = [[draft(queue=queue), unique([queue], "replace", queue=queue)] for _ in range(40)]
    pushes = [store.enqueue.push_all(batch) for batch in batches] + [
        store.enqueue.push(unique([queue], "replace")) for _ in range(20)
    ]
    answers = await asyncio.gather(*pushes, return_exceptions=True)
    assert [answer for answer in answers if isinstance(answer, BaseException)] == []
    live = [job for job in await fetch(store, queue, count=200) if job.unique_key is not None]
    assert len(live) <= 1


async def test_each_member_is_judged_by_its_own_policy(store: Store, queue: str) -> None:
    existing = await store.enqueue.push(unique([queue], queue=queue))
    await fetch(store, queue)
    policy = {"keys": ["type", "args"], "on_conflict": "replace", "states": ["available"]}
    narrow = keyed(replace(unique([queue], queue=queue), unique=Raw(msgspec.json.encode(policy))))
    pushed = await store.enqueue.push_all([unique([queue], "ignore", queue=queue), narrow])
    assert [job.id for job in pushed] == [existing.id, narrow.id]
    assert (await store.jobs.get(existing.id)).state is State.ACTIVE


# Without an answer


@timed(writes=WriteTimings(hints_s=0.3))
async def test_a_batch_is_stored_though_its_tokens_can_not_be(store: Store, other: Store, queue: str) -> None:
    """The safety net brings those (tests/integration/projector/test_safety.py)."""
    drafts = many(3, queue)
    with unreachable(store.nats, f"{store.config.namespace}.ready.", times=1_000_000):
        pushed = await store.enqueue.push_all(drafts)
    assert [job.state for job in pushed] == [State.AVAILABLE] * 3
    assert [(await other.jobs.get(one.id)).token for one in drafts] == [job.token for job in pushed]
    assert await fetch(other, queue) == []


async def test_a_lost_answer_is_looked_up(store: Store, queue: str) -> None:
    drafts = many(3, queue)
    with losing_answers(store.nats, store.config.job(drafts[-1].id)):
        await store.enqueue.push_all(drafts)
    assert [job.id for job in await fetch(store, queue, count=9)] == [one.id for one in drafts]


@timed(writes=WriteTimings(hints_s=0.3))
async def test_without_a_leader_nothing_is_stored(store: Store, queue: str) -> None:
    drafts = [*many(2, queue), draft(queue=queue, scheduled_at=store.clock.now() + 60_000)]
    with unreachable(store.nats, f"{store.config.namespace}.timer.", times=10_000), refusal("backend_unavailable"):
        await store.enqueue.push_all(drafts)
    assert await nothing_of(store, drafts)


# Limits


async def test_a_server_that_takes_less_is_named_with_what_it_takes(
    own_server: Callable[..., NatsServer], open_store: OpenStore, queue: str
) -> None:
    server = own_server(max_batch=1_000)
    with server:
        store = await open_store(server.url)
        with pytest.raises(OjsError) as caught:
            await store.enqueue.push_all(many(1_200, queue))
        assert caught.value.code == "batch_size_exceeded"
        assert caught.value.details == {"batch_size": 1_200, "max_batch_size": 1_000}
        assert await fetch(store, queue) == []
        assert len(await store.enqueue.push_all(many(1_000, queue))) == 1_000
        store.atomic.most = None
        assert await store.atomic.room_for(10_000) == 1_000
        assert await store.atomic.room_for(500) == 500
        with pytest.raises(OjsError) as caught:
            await store.enqueue.push_all([unique([queue, number], queue=queue) for number in range(600)])
        assert caught.value.details == {"batch_size": 600, "max_batch_size": 500}


async def test_room_for_a_batch_is_asked_for_without_storing_anything(store: Store, queue: str) -> None:
    drafts = many(1, queue)
    assert await store.atomic.room_for(30_000) == 30_000
    await store.enqueue.push_all(drafts)
    assert await subjects(store, store.config.records_stream, store.config.record("probe", REST)) == {}


async def test_a_record_that_is_too_large_refuses_the_batch(store: Store, queue: str) -> None:
    drafts = [draft(queue=queue), draft(queue=queue, meta=Raw(b'{"a":"' + b"x" * 9_000_000 + b'"}'))]
    with refusal("envelope_too_large"):
        await store.enqueue.push_all(drafts)
    assert await nothing_of(store, drafts)
