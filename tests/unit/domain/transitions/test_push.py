from __future__ import annotations

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import State, Timer
from ojs_engine.domain.transitions import activate, push
from ojs_engine.domain.transitions.push import push_discarded
from unit.domain.transitions.samples import SAMPLES, SECOND, T0, at, draft, pending


def test_push_makes_the_job_available_at_once() -> None:
    moment = at()
    transition = push(draft(), moment)
    job = transition.job
    assert (job.state, job.attempt, job.created_at, job.enqueued_at) == (State.AVAILABLE, 0, T0, T0)
    assert (job.token, job.timer, transition.ttl_s) == (moment.op, None, None)


def test_push_of_a_future_job_schedules_it_without_a_token() -> None:
    moment = at()
    job = push(draft(scheduled_at=T0 + SECOND), moment).job
    assert (job.state, job.token, job.enqueued_at) == (State.SCHEDULED, None, None)
    assert job.timer == Timer(moment.op, T0 + SECOND, "scheduler")


@pytest.mark.parametrize("scheduled_at", [T0, T0 - 1])
def test_push_with_a_time_that_has_come_is_immediate(scheduled_at: int) -> None:
    job = push(draft(scheduled_at=scheduled_at), at()).job
    assert (job.state, job.scheduled_at) == (State.AVAILABLE, scheduled_at)


def test_push_keeps_a_pending_draft_pending_whatever_its_schedule() -> None:
    job = push(draft(state=State.PENDING, scheduled_at=T0 + SECOND), at()).job
    assert (job.state, job.token, job.timer, job.enqueued_at) == (State.PENDING, None, None, None)


@pytest.mark.parametrize(
    ("members", "due_at"),
    [
        ({"expires_at": T0 + 5 * SECOND}, T0 + 5 * SECOND),
        ({"enqueue_ttl_ms": 4 * SECOND}, T0 + 4 * SECOND),
        ({"total_timeout_ms": 3 * SECOND}, T0 + 3 * SECOND),
        ({"expires_at": T0 + 5 * SECOND, "enqueue_ttl_ms": 4 * SECOND, "total_timeout_ms": 6 * SECOND}, T0 + 4 * SECOND),
    ],
)
def test_a_limit_of_an_available_job_arms_the_reaper(members: dict[str, int], due_at: int) -> None:
    moment = at()
    assert push(draft(**members), moment).job.timer == Timer(moment.op, due_at, "reaper")


def test_activation_enqueues_a_pending_job() -> None:
    moment = at(SECOND)
    job = activate(pending(), moment).job
    assert (job.state, job.activated_at, job.enqueued_at) == (State.AVAILABLE, T0 + SECOND, T0 + SECOND)
    assert job.token == moment.op


@pytest.mark.parametrize("state", [state for state in State if state is not State.PENDING])
def test_only_a_pending_job_is_activated(state: State) -> None:
    with pytest.raises(OjsError) as refusal:
        activate(SAMPLES[state](), at())
    assert refusal.value.code == "conflict"
    assert refusal.value.details["current_state"] == state


def test_a_step_that_may_not_be_pushed_is_created_with_its_end() -> None:
    problem = OjsError("queue_full", "the queue is full")
    transition = push_discarded(draft(unique_key="k"), problem, at())
    job = transition.job
    assert (job.state, job.created_at, job.discarded_at) == (State.DISCARDED, T0, T0)
    assert (job.unique_key, job.dead_letter, job.token) == (None, False, None)
    assert job.error is not None
    assert (job.error.code, job.error.message, job.error.retryable) == ("queue_full", "the queue is full", False)
    assert [(entry.event, entry.reason) for entry in job.transitions] == [("dropped", "queue_full")]
    assert transition.ttl_s is not None
