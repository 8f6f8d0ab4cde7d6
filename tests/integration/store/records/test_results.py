"""Results that are records of their own: with the ack or not at all, and no longer than they may stay."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from integration.samples import (
    ANYONE,
    draft,
    fetch,
    losing_answers,
    message,
    new_id,
    refusal,
    subjects,
    unreachable,
)
from integration.workflows.flows import Crash, chain, coordinate, crashing, create, end
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions import Moment, Transition, ack
from ojs_engine.domain.transitions.finish import INLINE_BYTES
from ojs_engine.jetstream.subjects import ANY, Kind
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.reset import Reset
from ojs_engine.store.store import Store
from ojs_features.workflows.store import Workflows
from support.waiting import eventually

LARGE = Raw(b'"' + b"r" * INLINE_BYTES + b'"')
SMALL = Raw(b'{"n":1}')


def with_result(result: Raw) -> Any:
    def decide(job: Job, moment: Moment) -> Transition:
        return ack(job, result, ANYONE, moment)

    return decide


async def active(store: Store, queue: str, **members: Any) -> Job:
    await store.enqueue.push(draft(queue=queue, **members))
    [job] = await fetch(store, queue)
    return job


async def completed(store: Store, queue: str, result: Raw = LARGE, **members: Any) -> Job:
    job = await active(store, queue, **members)
    return (await store.jobs.change(job.id, with_result(result))).after


async def blobs(store: Store, job_id: str) -> list[str]:
    return list(await subjects(store, store.config.records_stream, store.config.result(job_id, ANY)))


async def result_of(store: Store, job_id: str) -> Raw:
    return (await store.blobs.whole(await store.jobs.get(job_id))).result


async def test_a_large_result_is_read_back_from_beside_its_job(store: Store, other: Store, queue: str) -> None:
    job = await completed(store, queue)
    record = await message(store, store.config.job(job.id))
    assert record is not None
    assert len(record[0]) < 2_000
    [subject] = await blobs(store, job.id)
    found = await message(store, subject)
    assert found is not None
    assert (found[0], found[1]["Nats-TTL"], record[1]["Nats-TTL"]) == (bytes(LARGE), "604800s", "604800s")
    assert await result_of(other, job.id) == LARGE


async def test_a_small_result_is_part_of_the_record_and_costs_no_write(store: Store, queue: str) -> None:
    job = await active(store, queue)
    with crashing(store, 100) as written:
        await store.jobs.change(job.id, with_result(SMALL))
    assert written == [store.config.job(job.id)]
    assert (await store.jobs.get(job.id)).result == SMALL


async def test_a_result_leaves_by_its_own_time_and_its_job_stays(store: Store, queue: str) -> None:
    began = store.clock.now()
    job = await completed(store, queue, SMALL, result_ttl_s=2)
    assert await result_of(store, job.id) == SMALL

    async def gone() -> bool:
        return not await result_of(store, job.id)

    await eventually(gone)
    assert 2_000 <= store.clock.now() - began < 60_000
    found = await store.blobs.whole(await store.jobs.get(job.id))
    assert (found.state, found.result_blob, found.result) == (State.COMPLETED, None, NOTHING)


async def test_of_several_results_as_many_are_read_as_there_is_room_for(store: Store, queue: str) -> None:
    jobs = [await completed(store, queue), await completed(store, queue, SMALL), await completed(store, queue)]
    first, inline, last = await store.blobs.wholes(jobs, len(LARGE) + 1)
    assert (first.result, inline.result) == (LARGE, SMALL)
    assert last == jobs[2]


# Writes cut short


async def test_an_ack_may_be_cut_short_at_any_write(store: Store, other: Store, queue: str) -> None:
    for after in range(5):
        job = await active(store, f"{queue}.{after}")
        died = False
        with crashing(store, after):
            try:
                await store.jobs.change(job.id, with_result(LARGE))
            except Crash:
                died = True
        found = await other.jobs.get(job.id)
        if not died:
            assert after == 2, "the result, then the record"
            assert await result_of(other, job.id) == LARGE
            return
        assert (found.state, found.result_blob) == (State.ACTIVE, None)
        for subject in await blobs(other, job.id):  # nothing names it, and it leaves by itself
            left = await message(other, subject)
            assert left is not None
            assert left[1]["Nats-TTL"] == "604800s"
        await other.jobs.change(job.id, with_result(LARGE))
        assert await result_of(store, job.id) == LARGE
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("lost", ["blob", "job"])
async def test_an_ack_whose_answers_are_lost_is_stored_once(store: Store, queue: str, lost: Kind) -> None:
    job = await active(store, queue)
    with losing_answers(store.nats, store.config.record(lost, ""), 2) as requests:
        change = await store.jobs.change(job.id, with_result(LARGE))
    assert requests
    assert change.after.state is State.COMPLETED
    assert len(await blobs(store, job.id)) == 1
    assert await result_of(store, job.id) == LARGE


async def test_a_job_is_not_completed_while_its_result_can_not_be_stored(store: Store, queue: str) -> None:
    job = await active(store, queue)
    with unreachable(store.nats, store.config.record("blob", ""), 1_000), refusal("backend_unavailable"):
        await store.jobs.change(job.id, with_result(LARGE))
    assert (await store.jobs.get(job.id)).state is State.ACTIVE


async def test_a_refused_ack_takes_its_result_back(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    await other.jobs.change(job.id, transitions.cancel)
    moment = store.clock.moment()
    with pytest.raises(Conflict):
        await store.committer.commit(with_result(LARGE)(job, moment), 1, moment.op)

    async def none() -> bool:
        return not await blobs(store, job.id)

    await eventually(none)


# The end of a job is the end of its result


async def test_a_removed_job_takes_its_result_along(store: Store, queue: str) -> None:
    job = await completed(store, queue)
    beside = await completed(store, queue)
    await store.jobs.change(job.id, transitions.remove)

    async def none() -> bool:
        return not await blobs(store, job.id)

    await eventually(none)
    assert await result_of(store, beside.id) == LARGE


async def test_a_reset_takes_results_along(store: Store, queue: str) -> None:
    job = await completed(store, queue)
    reset: Reset = store._reset
    await reset.run(())
    assert await blobs(store, job.id) == []


# Workflows


@pytest.mark.parametrize("members", [{}, {"result_ttl": 0}, {"result_ttl": 1}])
async def test_a_result_that_is_set_apart_is_handed_on(store: Store, other: Store, queue: str, members: Any) -> None:
    definition = chain(queue, "a", "b", id=new_id())
    definition["steps"][0]["options"] |= members
    name = await create(store, definition)
    body = "r" * INLINE_BYTES
    [first] = await end(store, queue, result=body)
    assert (await store.jobs.get(first.id)).result_blob is not None
    await coordinate(other, name)
    [second] = await fetch(store, queue)
    [given] = (await store.of(Workflows).results.inputs([second]))[second.id].results
    assert bytes(given) == b'"' + body.encode() + b'"'


async def test_a_coordinator_may_die_while_it_hands_on_a_result(store: Store, other: Store, queue: str) -> None:
    for after in range(20):
        here = f"{queue}.{after}"
        name = await create(store, chain(here, "a", "b"))
        await end(store, here, result="r" * INLINE_BYTES)
        died = False
        with crashing(store, after):
            try:
                await coordinate(store, name)
            except Crash:
                died = True
        await coordinate(other, name)
        [second] = await fetch(other, here)
        [given] = (await other.of(Workflows).results.inputs([second]))[second.id].results
        assert len(given) == INLINE_BYTES + 2
        if not died:
            assert after > 1
            return
    raise AssertionError("it never came to its end")
