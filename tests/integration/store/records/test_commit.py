"""Commits when answers are lost, messages meet no leader, or the record is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import Raw

from integration.samples import (
    acked,
    draft,
    failed,
    fetch,
    losing_answers,
    message,
    refusal,
    timed,
    timers,
    tokens,
    unreachable,
)
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Transition
from ojs_engine.jetstream.connection import Reply, ReplyOrFailure
from ojs_engine.store.records.commit import CommitTimings
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.store import Store
from support.outside import Send, ahead, standing, tapped
from support.waiting import eventually

HOUR = 3_600_000


def job_subjects(store: Store) -> str:
    return store.config.job("")


@pytest.mark.parametrize("times", [1, 2])
async def test_a_push_whose_answer_is_lost_is_found_stored_and_stored_once(store: Store, queue: str, times: int) -> None:
    with losing_answers(store.nats, job_subjects(store), times) as lost:
        pushed = await store.enqueue.push(draft(queue=queue))
    assert len(lost) >= 1
    assert (await store.jobs.get(pushed.id)).transitions == pushed.transitions
    assert [job.id for job in await fetch(store, queue, count=3)] == [pushed.id]


async def test_an_ack_whose_answer_is_lost_succeeds_though_its_repetition_conflicts(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    with losing_answers(store.nats, job_subjects(store)):
        change = await store.jobs.change(pushed.id, acked)
    assert change.after.state is State.COMPLETED
    assert [entry.event for entry in (await store.jobs.get(pushed.id)).transitions] == ["pushed", "claimed", "acked"]


async def test_a_lost_answer_over_anothers_write_is_a_conflict(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)  # the ack is decided over the cached record
    await other.jobs.change(pushed.id, transitions.cancel)
    with losing_answers(store.nats, job_subjects(store)), refusal("conflict"):
        await store.jobs.change(pushed.id, acked)


async def test_a_push_that_is_heard_of_after_its_job_is_done_does_not_run_it_again(
    store: Store, other: Store, queue: str
) -> None:
    job = draft(queue=queue)

    async def done_elsewhere() -> None:
        await eventually(lambda: fetch(other, queue))
        await other.jobs.change(job.id, acked)

    # The token's answer is lost as well, so the token is sent once more.
    with (
        losing_answers(store.nats, f"{store.config.namespace}.ready."),
        losing_answers(store.nats, job_subjects(store), meanwhile=done_elsewhere),
    ):
        await store.enqueue.push(job)
    assert await fetch(store, queue) == []
    assert [entry.event for entry in (await other.jobs.get(job.id)).transitions] == ["pushed", "claimed", "acked"]


async def test_a_claim_that_is_heard_of_after_a_cancellation_does_not_let_the_ack_undo_it(
    store: Store, other: Store, queue: str
) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))

    async def cancelled_elsewhere() -> None:
        await other.jobs.change(pushed.id, transitions.cancel)

    with losing_answers(store.nats, job_subjects(store), meanwhile=cancelled_elsewhere):
        await fetch(store, queue)
    with refusal("conflict"):
        await store.jobs.change(pushed.id, acked)
    assert (await other.jobs.get(pushed.id)).state is State.CANCELLED


async def test_a_heartbeat_whose_answer_is_lost_is_recognised_by_its_timer(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue, worker="w", lease_ms=60_000)
    with losing_answers(store.nats, job_subjects(store)) as lost:
        assert (await store.jobs.extend([pushed.id], "w", 90_000)).extended == [pushed.id]
    assert lost
    found = await store.jobs.get(pushed.id)
    assert found.lease_ms == 90_000
    assert await timers(store, pushed.id) == []


async def test_a_record_that_meets_no_leader_is_written_again(store: Store, queue: str) -> None:
    with unreachable(store.nats, job_subjects(store), 3):
        pushed = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue, count=3)] == [pushed.id]
    await eventually(lambda: _none_left(store, queue))


async def _none_left(store: Store, queue: str) -> bool:
    await fetch(store, queue)
    return await tokens(store, queue) == 0


async def test_nobody_is_told_done_while_the_token_is_missing(store: Store, queue: str) -> None:
    with unreachable(store.nats, f"{store.config.namespace}.ready.", 3) as refused:
        pushed = await store.enqueue.push(draft(queue=queue))
    assert len(refused) == 3
    assert [job.id for job in await fetch(store, queue, count=3)] == [pushed.id]


async def test_nobody_is_told_done_while_the_timer_is_missing(store: Store, queue: str) -> None:
    with unreachable(store.nats, f"{store.config.namespace}.timer.", 3) as refused:
        pushed = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + HOUR))
    assert len(refused) == 3
    assert pushed.timer is not None
    assert await timers(store, pushed.id) == [pushed.timer.op]


async def test_a_push_that_cannot_place_its_token_fails_and_its_repetition_mends_it(store: Store, queue: str) -> None:
    job = draft(queue=queue)
    with unreachable(store.nats, f"{store.config.namespace}.ready.", 1_000), refusal("backend_unavailable"):
        await store.enqueue.push(job)
    assert (await store.jobs.get(job.id)).state is State.AVAILABLE
    assert await fetch(store, queue) == []
    with refusal("duplicate"):
        await store.enqueue.push(job)
    assert [found.id for found in await fetch(store, queue, count=3)] == [job.id]


async def test_a_stream_without_a_leader_is_reported_in_time_and_leaves_nothing(store: Store, queue: str) -> None:
    job = draft(queue=queue, expires_at=store.clock.now() + HOUR)
    loop = asyncio.get_running_loop()
    began = loop.time()
    with unreachable(store.nats, job_subjects(store), 1_000), refusal("backend_unavailable"):
        await store.enqueue.push(job)
    assert loop.time() - began < 30.0
    await eventually(lambda: _no_hints(store, job.id))


async def _no_hints(store: Store, job_id: str) -> bool:
    return await timers(store, job_id) == []


async def test_a_refused_push_takes_its_timer_and_token_back(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, expires_at=store.clock.now() + HOUR))
    assert pushed.timer is not None
    moment = store.clock.moment()
    rival = transitions.push(draft(id=pushed.id, queue=queue, expires_at=store.clock.now() + HOUR), moment)
    with pytest.raises(Conflict):
        await store.committer.commit(rival, 0, moment.op)

    async def only_the_winners() -> bool:
        assert pushed.timer is not None
        return await timers(store, pushed.id) == [pushed.timer.op] and await tokens(store, queue) == 1

    await eventually(only_the_winners)


async def test_pushing_a_delayed_id_many_times_leaves_one_timer(store: Store, queue: str) -> None:
    job = draft(queue=queue, scheduled_at=store.clock.now() + HOUR)
    outcomes = await asyncio.gather(*(store.enqueue.push(job) for _ in range(50)), return_exceptions=True)
    assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 1

    async def one_timer() -> bool:
        return len(await timers(store, job.id)) == 1

    await eventually(one_timer)


async def test_a_refused_commit_leaves_the_live_timer(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    [claimed] = await fetch(store, queue, lease_ms=9_000)
    assert claimed.timer is not None
    moment = store.clock.moment()
    with pytest.raises(Conflict):
        await store.committer.commit(acked(claimed, moment), 1, moment.op)
    assert await timers(store, pushed.id) == [claimed.timer.op]


async def test_hints_stay_while_their_record_may_still_be_stored(store: Store, queue: str) -> None:
    """The writes are not answered, every look finds the place free, and the first write is stored after all."""
    job = draft(queue=queue, expires_at=store.clock.now() + HOUR)
    held: list[tuple[str, bytes, str]] = []
    publish = store.nats.publish

    def late(subject: str, payload: bytes, headers: str = "", reply: str = "", *, along: bool = False) -> None:
        if subject.startswith(job_subjects(store)):
            held.append((subject, payload, headers))
        else:
            publish(subject, payload, headers, reply, along=along)

    store.nats.publish = late  # type: ignore[method-assign]
    try:
        with losing_answers(store.nats, job_subjects(store), 1_000), refusal("backend_unavailable"):
            await store.enqueue.push(job)
    finally:
        store.nats.publish = publish  # type: ignore[method-assign]
    publish(*held[0])
    await eventually(lambda: message(store, store.config.job(job.id)))
    found = await store.jobs.get(job.id)
    assert found.timer is not None
    assert found.timer.op in await timers(store, job.id)
    assert [fetched.id for fetched in await fetch(store, queue, count=9)] == [job.id]


def pushes(store: Store, jobs: list[Job]) -> list[tuple[Transition, int, str]]:
    moments = [store.clock.moment() for _ in jobs]
    return [(transitions.push(job, moment), 0, moment.op) for job, moment in zip(jobs, moments, strict=True)]


async def test_one_failure_in_a_batch_concerns_nobody_else(store: Store, queue: str) -> None:
    taken = await store.enqueue.push(draft(queue=queue))
    jobs = [draft(queue=queue), draft(id=taken.id, queue=queue), draft(queue=queue)]
    first, second, third = await store.committer.commit_all(pushes(store, jobs))
    assert isinstance(first, int)
    assert isinstance(second, Conflict)
    assert isinstance(third, int)
    assert [job.id for job in await fetch(store, queue, count=9)] == [taken.id, jobs[0].id, jobs[2].id]


@timed(commits=CommitTimings(portion_bytes=4_000))
async def test_large_records_wait_for_the_answers_to_those_before_them(store: Store, queue: str) -> None:
    """All at once, those behind many megabytes would not be answered in time: they would be given up, though stored."""
    jobs = [draft(queue=queue, args=Raw(b'["' + b"a" * 2_000 + b'"]')) for _ in range(10)]
    answers: list[asyncio.Future[Any]] = []
    most = 0

    def counted(send: Send, subject: str, *rest: Any) -> Awaitable[ReplyOrFailure] | None:
        nonlocal most
        if not subject.startswith(job_subjects(store)):
            return None
        answer = asyncio.ensure_future(send(subject, *rest))
        answers.append(answer)
        most = max(most, sum(not one.done() for one in answers))
        return answer

    with tapped(store.nats, counted):
        outcomes = await store.committer.commit_all(pushes(store, jobs))
    assert [type(outcome) for outcome in outcomes] == [int] * 10
    assert most == 2


@timed(commits=CommitTimings(portion_bytes=1, deadline_s=0.1))
async def test_large_records_are_not_sent_after_one_that_nats_has_failed(store: Store, queue: str) -> None:
    """Whoever waits for many would wait the longest of all for NATS to come back."""
    jobs = [draft(queue=queue) for _ in range(3)]
    with unreachable(store.nats, job_subjects(store), 1_000) as refused:
        outcomes = await store.committer.commit_all(pushes(store, jobs))
    assert [outcome.code for outcome in outcomes if isinstance(outcome, OjsError)] == ["backend_unavailable"] * 3
    assert set(refused) == {store.config.job(jobs[0].id)}


async def test_a_retry_replaces_the_lease_by_the_back_off_in_one_step(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    [claimed] = await fetch(store, queue)
    change = await store.jobs.change(pushed.id, failed)
    assert change.before == claimed
    assert change.after.timer is not None
    assert change.after.timer.service == "scheduler"
    assert await timers(store, pushed.id) == [change.after.timer.op]


async def test_what_follows_from_a_record_is_sent_ahead_of_it(store: Store, queue: str) -> None:
    """A process may die between any two messages: a hint without its record is let go, a record without its hint is stuck."""
    await store.enqueue.push(draft(queue=queue))  # by now the queue's settings are known
    sent: list[str] = []

    def seen(_send: Send, subject: str, *_: object) -> None:
        if not subject.startswith("$JS.API."):
            sent.append(subject)

    with tapped(store.nats, seen):
        delayed = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + HOUR))
        waiting = await store.enqueue.push(draft(queue=queue))
    kinds = [subject.split(".")[1] if subject.startswith(f"{store.config.namespace}.") else subject for subject in sent]
    assert kinds == ["timer", store.config.job(delayed.id), "ready", store.config.job(waiting.id)]


async def test_a_timer_that_nothing_waits_for_any_more_goes_with_the_commit(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + HOUR))
    assert len(await timers(store, pushed.id)) == 1
    await store.jobs.change(pushed.id, transitions.cancel)
    assert await timers(store, pushed.id) == []


async def test_a_repeated_push_repeats_the_token_of_a_job_that_is_new(store: Store, queue: str) -> None:
    job = draft(queue=queue)
    with standing(store):
        await store.enqueue.push(job)
        for ahead_ms, repeated in ((0, 1), (CommitTimings().repeat_within_ms, 0)):
            there = await tokens(store, queue)
            with ahead(store, ahead_ms), refusal("duplicate"):
                await store.enqueue.push(job)
            assert await tokens(store, queue) == there + repeated
    assert [found.id for found in await fetch(store, queue, count=9)] == [job.id]


@contextmanager
def refusing(store: Store, code: int, times: int) -> Iterator[list[str]]:
    """The next `times` records are refused by JetStream, with this code."""
    refused: list[str] = []
    body = b'{"error":{"code":%d,"err_code":10008,"description":"as the test wants it"}}' % code

    async def answer() -> ReplyOrFailure:
        return Reply(b"", b"", body, None)

    def tap(_send: Send, subject: str, *_: object) -> Awaitable[ReplyOrFailure] | None:
        if not subject.startswith(job_subjects(store)) or len(refused) >= times:
            return None
        refused.append(subject)
        return answer()

    with tapped(store.nats, tap):
        yield refused


async def test_a_refusal_that_passes_is_tried_again(store: Store, queue: str) -> None:
    with refusing(store, 503, 2) as refused:
        pushed = await store.enqueue.push(draft(queue=queue))
    assert len(refused) == 2
    assert [job.id for job in await fetch(store, queue)] == [pushed.id]


async def test_a_refusal_that_stays_is_told_at_once(store: Store, queue: str) -> None:
    job = draft(queue=queue)
    with refusing(store, 500, 9) as refused, refusal("backend_unavailable"):
        await store.enqueue.push(job)
    assert len(refused) == 1
    with refusal("not_found"):
        await store.jobs.get(job.id)
