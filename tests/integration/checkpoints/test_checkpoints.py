from __future__ import annotations

import asyncio

import pytest
from msgspec import Raw

from integration.samples import acked, draft, fetch, losing_answers, message, refusal, requeued
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import JobHolder, Moment, Transition
from ojs_engine.store.store import Store
from ojs_features.checkpoints.rules import CheckpointRecord, Saved, note_checkpoint
from ojs_features.checkpoints.store import Checkpoints
from support.waiting import eventually

ANYONE = JobHolder()
ONE = Saved(state=Raw(b'{"step":1}'), step_index=1, metadata=Raw(b'{"m":"x"}'))


async def active(store: Store, queue: str, **members: object) -> Job:
    await store.enqueue.push(draft(queue=queue, **members))
    [job] = await fetch(store, queue, worker="w")
    return job


async def last(store: Store, job_id: str) -> CheckpointRecord:
    found = await store.of(Checkpoints).get(job_id)
    assert found is not None
    return found


async def test_the_last_that_was_saved_is_read_through_every_gateway(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    assert await other.of(Checkpoints).get(job.id) is None
    for number in (1, 2, 3):
        _, saved = await store.of(Checkpoints).save(job.id, Saved(state=Raw(b"%d" % number)), JobHolder("w", 1))
        assert saved.sequence == number
    found = await last(other, job.id)
    assert (found.sequence, bytes(found.state)) == (3, b"3")


async def test_saves_at_once_are_numbered_one_after_the_other(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    saves = [one.of(Checkpoints).save(job.id, ONE, ANYONE) for one in (store, other) * 5]
    numbers = [checkpoint.sequence for _, checkpoint in await asyncio.gather(*saves)]
    assert sorted(numbers) == list(range(1, 11))
    assert (await last(store, job.id)).sequence == 10


async def test_a_later_attempt_is_noted_to_have_it_and_finds_it(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    await store.of(Checkpoints).save(job.id, ONE, ANYONE)
    await store.jobs.change(job.id, requeued)
    [second] = await fetch(other, queue, worker="v")
    assert (second.id, second.attempt, second.checkpoint) == (job.id, 2, True)
    found = await last(other, second.id)
    assert (bytes(found.state), found.step_index, bytes(found.metadata)) == (b'{"step":1}', 1, b'{"m":"x"}')


async def test_a_note_whose_answer_is_lost_is_written_once(store: Store, queue: str) -> None:
    job = await active(store, queue)
    ops: list[str] = []

    def decide(found: Job, moment: Moment) -> Transition:
        ops.append(moment.op)
        return note_checkpoint(found, ANYONE, moment)

    with losing_answers(store.nats, store.config.job(job.id)) as lost:
        noted = await store.jobs.change(job.id, decide)
    assert len(lost) == len(ops) == 1
    assert noted.after == await store.jobs.get(job.id)
    assert (noted.after.amended, noted.after.transitions) == (ops[0], job.transitions)


async def test_it_leaves_soon_after_its_job_has_ended(store: Store, queue: str) -> None:
    job = await active(store, queue)
    await store.of(Checkpoints).save(job.id, ONE, ANYONE)
    await store.jobs.change(job.id, acked)

    async def leaving() -> bool:
        found = await message(store, store.config.record("checkpoint", job.id))
        return found is not None and found[1].get("Nats-TTL") == "3600s"

    await eventually(leaving)
    assert (await last(store, job.id)).sequence == 1
    with refusal("conflict"):
        await store.of(Checkpoints).save(job.id, ONE, ANYONE)


async def test_a_retried_dead_letter_goes_on_from_it(store: Store, queue: str) -> None:
    job = await active(store, queue)
    await store.of(Checkpoints).save(job.id, ONE, ANYONE)
    failure = transitions.Failure(message="no", action="DEAD_LETTER")
    dead = await store.jobs.change(job.id, lambda found, moment: transitions.nack(found, failure, ANYONE, moment))
    assert dead.after.state is State.DISCARDED
    await store.jobs.revive(job.id, transitions.retry_by_hand)
    [again] = await fetch(store, queue, worker="w")
    assert again.checkpoint
    assert (await last(store, again.id)).sequence == 1


async def test_what_was_deleted_is_not_found_and_the_next_is_the_first(store: Store, queue: str) -> None:
    job = await active(store, queue)
    assert not await store.of(Checkpoints).delete(job.id)
    await store.of(Checkpoints).save(job.id, ONE, ANYONE)
    await store.of(Checkpoints).save(job.id, ONE, ANYONE)
    assert await store.of(Checkpoints).delete(job.id)
    assert not await store.of(Checkpoints).delete(job.id)
    assert await store.of(Checkpoints).get(job.id) is None
    _, saved = await store.of(Checkpoints).save(job.id, ONE, ANYONE)
    assert saved.sequence == 1


@pytest.mark.parametrize("holder", [JobHolder("another"), JobHolder("w", 7)])
async def test_who_does_not_hold_the_job_saves_nothing(store: Store, queue: str, holder: JobHolder) -> None:
    job = await active(store, queue)
    with refusal("conflict"):
        await store.of(Checkpoints).save(job.id, ONE, holder)
    assert await store.of(Checkpoints).get(job.id) is None
    assert not (await store.jobs.get(job.id)).checkpoint


async def test_there_is_none_of_a_job_that_is_not_there(store: Store) -> None:
    nobody = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
    with refusal("not_found"):
        await store.of(Checkpoints).save(nobody, ONE, ANYONE)
    with refusal("not_found"):
        await store.of(Checkpoints).get(nobody)


async def test_one_that_is_larger_than_a_message_is_refused(store: Store, queue: str) -> None:
    job = await active(store, queue)
    with refusal("envelope_too_large"):
        await store.of(Checkpoints).save(job.id, Saved(state=Raw(b'"%s"' % (b"x" * store.nats.max_payload))), ANYONE)
    assert await store.of(Checkpoints).get(job.id) is None
