from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.samples import acked, attempt, draft, fetch, losing_answers, refusal, requeued, set_up, subjects, timed, tokens
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.store.capacity.capacity import CapacityTimings
from ojs_engine.store.store import Store
from support.waiting import eventually


async def test_exactly_as_many_are_taken_as_there_is_room_for(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, max_size=20)
    pushes = [attempt(one, queue, priority=n % 3) for n in range(16) for one in (store, other)]
    taken = [job for job in await asyncio.gather(*pushes) if job is not None]
    assert len(taken) == 20
    assert await only_tokens(store, queue) == 20
    found = await fetch(store, queue, count=7)
    assert len(found) == 7
    refilled = [await attempt(one, queue) for one in (store, other) for _ in range(8)]
    assert sum(job is not None for job in refilled) == 7


async def only_tokens(store: Store, queue: str) -> int:
    """The number of tokens once no place is held any more: a push is answered before its place is given back."""

    async def none_is_held() -> bool:
        return not await subjects(store, store.config.ready_stream, store.config.seat_of_queue(queue))

    await eventually(none_is_held)
    return await tokens(store, queue)


async def test_the_bound_holds_while_two_gateways_push_and_a_third_party_drains(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, max_size=10)
    chance = random.Random(1)
    pushed: list[Job] = []
    fetched: list[Job] = []
    most = 0
    done = False

    async def push(one: Store) -> None:
        for _ in range(15):
            job = await attempt(one, queue)
            if job is None:
                await asyncio.sleep(chance.random() * 0.01)  # at any point of the others' work
            else:
                pushed.append(job)

    async def drain() -> None:
        while not done or await tokens(store, queue):
            fetched.extend(await fetch(other, queue, count=chance.randint(1, 4)))

    async def watch() -> None:
        nonlocal most
        while not done:
            most = max(most, await tokens(store, queue))

    draining, watching = asyncio.create_task(drain()), asyncio.create_task(watch())
    await asyncio.gather(*(push(one) for one in (store, other) for _ in range(4)))
    done = True
    await asyncio.wait_for(asyncio.gather(draining, watching), 60.0)
    assert 0 < most <= 10
    assert {job.id for job in fetched} == {job.id for job in pushed}


async def test_a_full_queue_says_how_full_it_is(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=2)
    await store.enqueue.push(draft(queue=queue))
    pressure = store.capacity.pressure(queue)
    assert pressure is not None
    assert (pressure.depth, pressure.bound, pressure.threshold) == (1, 2, 0.8)
    await store.enqueue.push(draft(queue=queue))
    with pytest.raises(OjsError) as caught:
        await store.enqueue.push(draft(queue=queue))
    assert caught.value.retry_after == 1
    assert caught.value.details == {"queue": queue, "depth": 2, "bound": 2, "strategy": "reject"}
    assert ("X-OJS-Queue-Depth", "2") in caught.value.headers


async def test_jobs_for_later_and_returning_ones_take_no_place(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=1)
    await store.enqueue.push(draft(queue=queue))
    [job] = await fetch(store, queue)
    await store.enqueue.push(draft(queue=queue))
    returned = await store.jobs.change(job.id, requeued)
    assert returned.after.state is State.AVAILABLE
    later = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + 3_600_000))
    assert later.state is State.SCHEDULED
    with refusal("queue_full"):
        await store.enqueue.push(draft(queue=queue))


async def test_the_oldest_makes_room_where_the_queue_says_so(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=3, overflow_policy="drop_oldest")
    jobs = [await store.enqueue.push(draft(queue=queue, priority=n % 2)) for n in range(5)]
    states = [(await store.jobs.get(job.id)).state for job in jobs]
    assert states == [State.DISCARDED] * 2 + [State.AVAILABLE] * 3
    error = (await store.jobs.get(jobs[0].id)).error
    assert error is not None
    assert error.type == "overflow"
    assert await only_tokens(store, queue) == 3


async def test_no_job_is_dropped_for_a_place_that_is_given_back(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, max_size=3, overflow_policy="drop_oldest")
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(3)]
    [fetched] = await fetch(store, queue)

    async def discarded() -> int:
        return [(await store.jobs.get(job.id)).state for job in jobs].count(State.DISCARDED)

    async def one_is() -> bool:
        return await discarded() == 1

    async with other.capacity.places(queue, 1):
        await store.jobs.change(fetched.id, requeued)
        pushing = asyncio.create_task(store.enqueue.push(draft(queue=queue)))
        await eventually(one_is)
    assert (await pushing).state is State.AVAILABLE
    assert await discarded() == 1


async def test_the_oldest_make_room_for_a_whole_batch_if_it_can_fit_at_all(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=3, overflow_policy="drop_oldest")
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(3)]
    with refusal("queue_full"):
        await store.enqueue.push_all([draft(queue=queue) for _ in range(4)])
    assert await only_tokens(store, queue) == 3
    batch = await store.enqueue.push_all([draft(queue=queue) for _ in range(2)])
    states = [(await store.jobs.get(job.id)).state for job in (*jobs, *batch)]
    assert states == [State.DISCARDED] * 2 + [State.AVAILABLE] * 3


def only(queue: str, on_conflict: str, **members: Any) -> Job:
    """The job of the queue that is unique by its type."""
    policy = {"keys": ["type", "queue"], "on_conflict": on_conflict}
    return keyed(draft(queue=queue, type="test.only", unique=Raw(msgspec.json.encode(policy)), **members))


@pytest.mark.parametrize("overflow_policy", ["reject", "drop_oldest"])
async def test_a_duplicate_is_answered_as_such_by_a_full_queue_and_drops_nothing(
    store: Store, queue: str, overflow_policy: str
) -> None:
    await set_up([store], queue, max_size=2, overflow_policy=overflow_policy)
    jobs = [await store.enqueue.push(one) for one in (draft(queue=queue), only(queue, "reject"))]
    refused = [only(queue, "reject"), only(queue, "replace", id=jobs[1].id)]
    if overflow_policy == "drop_oldest":
        refused.append(draft(queue=queue, id=jobs[0].id))
    for one in refused:
        with refusal("duplicate"):
            await store.enqueue.push(one)
        with refusal("duplicate"):
            await store.enqueue.push_all([draft(queue=queue), one])
    assert (await store.enqueue.push(only(queue, "ignore"))).id == jobs[1].id
    assert [job.id for job in await store.enqueue.push_all([only(queue, "ignore")])] == [jobs[1].id]
    assert [(await store.jobs.get(job.id)).state for job in jobs] == [State.AVAILABLE] * 2


@timed(capacity=CapacityTimings(seat_ms=300))
async def test_places_of_a_gateway_that_died_are_given_to_others(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=1)
    standing = await store.capacity._count(queue)
    assert await store.capacity._sit(queue, 1, standing.sequence)  # and nothing after that
    assert (await store.enqueue.push(draft(queue=queue))).state is State.AVAILABLE


@timed(capacity=CapacityTimings(wait_s=0.1))
async def test_places_that_are_taken_count_until_they_are_given_back(store: Store, other: Store, queue: str) -> None:
    await set_up([store, other], queue, max_size=2)
    async with store.capacity.places(queue, 1):
        assert await attempt(other, queue) is not None
        assert await attempt(other, queue) is None
    assert await attempt(other, queue) is not None


async def test_a_batch_that_does_not_fit_is_refused_as_a_whole(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=4)
    await store.enqueue.push_all([draft(queue=queue) for _ in range(3)])
    with refusal("queue_full"):
        await store.enqueue.push_all([draft(queue=queue) for _ in range(2)])
    assert await only_tokens(store, queue) == 3
    assert len(await fetch(store, queue, count=10)) == 3
    with pytest.raises(OjsError, match="5 jobs at once never fit") as refused:
        await store.enqueue.push_all([draft(queue=queue) for _ in range(5)])
    assert (refused.value.code, refused.value.retryable, refused.value.retry_after) == ("queue_full", False, 1)
    assert "at most 4" in refused.value.hint
    later = [draft(queue=queue, scheduled_at=store.clock.now() + 3_600_000) for _ in range(5)]
    await store.enqueue.push_all([*later, *(draft(queue=queue) for _ in range(4))])


async def test_a_refused_push_gives_its_place_back(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=2)
    job = await store.enqueue.push(draft(queue=queue))
    with refusal("duplicate"):
        await store.enqueue.push(draft(id=job.id, queue=queue))
    [held] = await fetch(store, queue)
    await store.jobs.change(held.id, acked)
    assert await eventually(lambda: nothing_left(store, queue))


async def nothing_left(store: Store, queue: str) -> bool:
    await fetch(store, queue)
    return await subjects(store, store.config.ready_stream, store.config.ready_of_queue(queue)) == {}


async def test_an_answer_that_is_lost_costs_a_place_for_a_while_only(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=1)
    with losing_answers(store.nats, store.config.seat(queue, 1)), refusal("backend_unavailable"):
        await store.enqueue.push(draft(queue=queue))
    places = store.config.seat_of_queue(queue)
    assert list((await eventually(lambda: subjects(store, store.config.ready_stream, places))).values()) == [1]
    store.clock._offset += 60  # a minute later
    assert (await store.enqueue.push(draft(queue=queue))).state is State.AVAILABLE
