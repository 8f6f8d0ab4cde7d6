from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_core.domain.job import NOTHING, Job, Membership, State, Timer
from ojs_core.domain.transitions import (
    Failure,
    JobHolder,
    Transition,
    ack,
    activate,
    cancel,
    claim,
    drop,
    due,
    move,
    nack,
    postpone,
    push,
    reissue,
    reprioritise,
)
from ojs_core.domain.transitions.retention import result_expires_at, retention_s
from support.tables import each
from unit.domain.transitions.samples import (
    ANYONE,
    SECOND,
    T0,
    active,
    at,
    available,
    completed,
    dead_letter,
    discarded,
    draft,
    pending,
)

DAY_S = 86_400


def test_a_live_timer_that_is_still_right_is_kept() -> None:
    job = pending(expires_at=T0 + 9 * SECOND)
    transition = activate(job, at(SECOND))
    assert (transition.arm, transition.cancel, transition.job.timer) == (None, None, job.timer)


def test_a_timer_whose_time_has_come_is_not_kept() -> None:
    job = available(expires_at=T0 + SECOND)
    moment = at(SECOND)
    transition = reissue(job, moment)
    assert job.timer is not None
    assert (transition.arm, transition.cancel) == (Timer(moment.op, T0 + SECOND, "reaper"), job.timer.op)


@pytest.mark.parametrize(
    "leave",
    [
        cancel,
        reissue,
        lambda job, moment: drop(job, "queue_deleted", moment),
        lambda job, moment: move(job, "elsewhere", moment),
        lambda job, moment: postpone(job, T0 + 9 * SECOND, moment),
        lambda job, moment: reprioritise(job, 7, moment),
    ],
    ids=["cancel", "reissue", "drop", "move", "postpone", "reprioritise"],
)
def test_what_leaves_a_token_behind_says_whose_it_was(leave: Callable[..., Transition]) -> None:
    job = available()
    assert leave(job, at(SECOND)).stale_token_of == job


def test_a_claim_has_the_token_in_hand_and_who_has_none_leaves_none() -> None:
    assert claim(available(), "w", None, at(SECOND)).stale_token_of is None
    assert cancel(active(), at(SECOND)).stale_token_of is None
    assert push(draft(), at()).stale_token_of is None


def test_a_timer_for_another_service_is_not_kept() -> None:
    job = replace(pending(expires_at=T0 + 9 * SECOND), timer=Timer("old", T0 + 9 * SECOND, "scheduler"))
    moment = at()
    transition = activate(job, moment)
    assert (transition.arm, transition.cancel) == (Timer(moment.op, T0 + 9 * SECOND, "reaper"), "old")


def test_of_two_deadlines_at_once_the_limit_goes_first() -> None:
    job = nack(active(total_timeout_ms=SECOND), Failure(message="no"), ANYONE, at()).job
    assert job.timer is not None
    assert (job.timer.at, job.timer.service) == (T0 + SECOND, "reaper")


def test_a_new_deadline_replaces_the_timer() -> None:
    job = active(lease_ms=6 * SECOND)
    moment = at(SECOND)
    transition = nack(job, Failure(message="no"), ANYONE, moment)
    assert job.timer is not None
    assert transition.cancel == job.timer.op
    assert transition.arm == transition.job.timer == Timer(moment.op, T0 + 2 * SECOND, "scheduler")


def test_a_job_that_needs_no_timer_loses_it() -> None:
    job = available(enqueue_ttl_ms=SECOND)
    assert job.timer is not None
    transition = cancel(job, at())
    assert (transition.arm, transition.cancel, transition.job.timer) == (None, job.timer.op, None)


ROWS: list[tuple[str, Callable[[], Transition], State | None, State]] = [
    ("pushed", lambda: push(draft(), at()), None, State.AVAILABLE),
    ("activated", lambda: activate(pending(), at()), State.PENDING, State.AVAILABLE),
    ("claimed", lambda: claim(available(), "w1", None, at()), State.AVAILABLE, State.ACTIVE),
    ("acked", lambda: ack(active(), NOTHING, ANYONE, at()), State.ACTIVE, State.COMPLETED),
    ("failed", lambda: nack(active(), Failure(message="no"), ANYONE, at()), State.ACTIVE, State.RETRYABLE),
    ("requeued", lambda: nack(active(), Failure(message="", requeue=True), ANYONE, at()), State.ACTIVE, State.AVAILABLE),
    ("cancelled", lambda: cancel(active(), at()), State.ACTIVE, State.CANCELLED),
    ("lease_expired", lambda: _due(active(lease_ms=1)), State.ACTIVE, State.AVAILABLE),
    ("timed_out", lambda: _due(active(timeout_ms=1)), State.ACTIVE, State.RETRYABLE),
    ("stalled", lambda: _due(active(heartbeat_timeout_ms=1)), State.ACTIVE, State.RETRYABLE),
    ("total_timed_out", lambda: _due(active(total_timeout_ms=1)), State.ACTIVE, State.DISCARDED),
    ("expired", lambda: _due(pending(expires_at=T0 + 1)), State.PENDING, State.DISCARDED),
    ("ttl_expired", lambda: _due(available(enqueue_ttl_ms=1)), State.AVAILABLE, State.DISCARDED),
]


def _due(job: Job) -> Transition:
    decision = due(job, at(SECOND))
    assert isinstance(decision, Transition)
    return decision


@each(("event", "run", "before", "after"), ROWS, ids=[row[0] for row in ROWS])
def test_each_transition_is_logged(event: str, run: Callable[[], Transition], before: State | None, after: State) -> None:
    job = run().job
    entry = job.transitions[-1]
    assert (entry.event, entry.before, entry.after, entry.attempt) == (event, before, after, job.attempt)
    assert [entry.n for entry in job.transitions] == list(range(1, len(job.transitions) + 1))
    assert entry.worker == ("w1" if State.ACTIVE in (before, after) else None)


def test_the_log_keeps_the_last_64_and_goes_on_counting() -> None:
    job = available()
    for n in range(2, 101):
        moment = at(n)
        job = reissue(job, moment).job
        assert (job.transitions[-1].n, job.transitions[-1].op, job.transitions[-1].at) == (n, moment.op, T0 + n)
    assert [entry.n for entry in job.transitions] == list(range(37, 101))


@each(
    ("make", "result_ttl_s", "kept_s"),
    [
        (completed, None, 7 * DAY_S),
        (completed, 60, 7 * DAY_S),
        (completed, 60 * DAY_S, 60 * DAY_S),
        (completed, 0, 7 * DAY_S),
        (completed, -1, None),
        (discarded, None, 30 * DAY_S),
        (discarded, 31 * DAY_S, 31 * DAY_S),
        (dead_letter, None, 180 * DAY_S),
        (dead_letter, 31 * DAY_S, 180 * DAY_S),
    ],
)
def test_a_finished_record_stays_for_its_retention(make: Any, result_ttl_s: int | None, kept_s: int | None) -> None:
    assert retention_s(make(result_ttl_s=result_ttl_s)) == kept_s


def test_a_refusal_leaves_the_document_alone() -> None:
    job = active("w1")
    assert ack(job, Raw(b"1"), JobHolder("w1", 1), at()).job is not job
    assert (job.state, job.result) == (State.ACTIVE, NOTHING)


# What a commit hints at beside the timer and the token


def member(*, opens: bool) -> Membership:
    return Membership(id="wf", node=1, kind="chain", step="s", index=0, size=2, opens=opens)


def test_a_workflow_hears_of_the_start_of_a_step_that_opens_it_and_of_each_end() -> None:
    opening = available(workflow=member(opens=True))
    first = claim(opening, "w1", None, at())
    assert (first.step, ack(first.job, NOTHING, ANYONE, at()).step) == ("started", "ended")
    later = claim(available(workflow=member(opens=False)), "w1", None, at())
    assert (later.step, cancel(later.job, at()).step) == (None, "ended")


def test_nobody_hears_of_a_job_without_a_workflow_nor_of_a_second_attempt() -> None:
    started = claim(available(), "w1", None, at())
    assert (started.step, ack(started.job, NOTHING, ANYONE, at()).step) == (None, None)
    first = claim(available(workflow=member(opens=True)), "w1", None, at())
    again = nack(first.job, Failure(message="not now", requeue=True), ANYONE, at())
    assert (again.step, claim(again.job, "w1", None, at()).step) == (None, None)


def test_whoever_leaves_an_attempt_gives_its_permits_back() -> None:
    job = replace(active(), permits=("queue:a", "key:b"))
    for end in (ack(job, NOTHING, ANYONE, at()), nack(job, Failure(message="no"), ANYONE, at()), cancel(job, at())):
        assert (end.job.permits, end.releases, end.claim) == ((), job.permits, job.transitions[-1].op)
    assert ack(active(), NOTHING, ANYONE, at()).claim is None


@pytest.mark.parametrize(("ttl_s", "expires_at"), [(7, T0 + 7 * SECOND), (-1, None), (None, T0 + 7 * DAY_S * SECOND)])
def test_a_result_leaves_to_the_millisecond_when_it_should(ttl_s: int | None, expires_at: int | None) -> None:
    job = replace(completed(), result_stored_at=T0, result_ttl_s=ttl_s)
    assert result_expires_at(job) == expires_at
    assert result_expires_at(replace(job, result_stored_at=None)) is None
