"""A job's history in the words of ojs-execution-history, and its attempts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import CALLED_OFF, Job, Membership
from ojs_engine.domain.transitions import (
    Failure,
    JobHolder,
    Liveness,
    ack,
    cancel,
    claim,
    delete,
    due,
    move,
    nack,
    push,
    reprioritise,
)
from ojs_engine.domain.transitions.log import KEPT
from ojs_engine.domain.transitions.result import Transition
from ojs_engine.domain.worker import CompleteList, Mark
from ojs_features.history.attempts import attempts_of
from ojs_features.history.happenings import Actor, history_of
from unit.domain.transitions.samples import ANYONE, SECOND, T0, active, at, available, completed, dead_letter, draft, retryable


def told(job: Job) -> list[tuple[str, dict[str, Any]]]:
    return [(one.type, one.data) for one in history_of(job).events]


def types(job: Job) -> list[str]:
    return [kind for kind, _ in told(job)]


def test_a_job_that_fails_once_and_then_succeeds() -> None:
    job = push(draft(args=Raw(b'["abc"]'), queue="mail"), at()).job
    job = claim(job, "w1", None, at(SECOND)).job
    job = nack(job, Failure(message="SMTP timeout", code="smtp", type="Timeout"), ANYONE, at(2 * SECOND)).job
    promoted = due(job, at(3 * SECOND))
    assert isinstance(promoted, Transition)
    job = claim(promoted.job, None, None, at(4 * SECOND)).job
    job = ack(job, Raw(b"1"), JobHolder(), at(4 * SECOND + 250)).job
    failed = {"attempt": 1, "error": "SMTP timeout", "code": "smtp", "type": "Timeout", "will_retry": True}
    assert told(job) == [
        ("job.created", {"queue": "mail", "type": "test.job", "args_size_bytes": 7}),
        ("job.state_changed", {"from": "available", "to": "active", "cause": "claimed"}),
        ("job.attempt_started", {"attempt": 1, "worker_id": "w1"}),
        ("job.attempt_failed", failed),
        ("job.state_changed", {"from": "active", "to": "retryable", "cause": "failed", "reason": "Timeout"}),
        ("job.state_changed", {"from": "retryable", "to": "available", "cause": "promoted"}),
        ("job.state_changed", {"from": "available", "to": "active", "cause": "claimed"}),
        ("job.attempt_started", {"attempt": 2, "worker_id": "unknown"}),
        ("job.attempt_completed", {"attempt": 2, "duration_ms": 250}),
        ("job.state_changed", {"from": "active", "to": "completed", "cause": "acked"}),
    ]
    history = history_of(job)
    assert history.complete
    assert [one.actor for one in history.events[:4]] == [None, *[Actor("worker", "w1")] * 3]
    assert history.events[5].actor == Actor("system")
    assert len({one.id for one in history.events}) == len(history.events)


def test_a_discarded_job_says_how_often_it_was_tried_and_why_it_failed_last() -> None:
    assert told(dead_letter())[-1] == ("job.discarded", {"total_attempts": 1, "last_error": "no"})
    assert told(dead_letter())[-3][1]["will_retry"] is False


def test_a_cancelled_job_says_why_and_by_whom() -> None:
    job = cancel(active(), at(), "too late").job
    assert told(job)[-1] == ("job.cancelled", {"reason": "too late"})
    assert history_of(job).events[-1].actor == Actor("client")
    called_off = cancel(active(), at(), CALLED_OFF).job
    assert history_of(called_off).events[-1].actor == Actor("system")


def test_who_gave_a_job_back_is_told() -> None:
    held = active("w", 1_800_000)
    mark = Mark(5, T0)
    missing = Liveness(T0 + 30 * SECOND, covered=True, complete=CompleteList(Mark(1, 1), mark, frozenset()))
    taken_back = due(held, at(31 * SECOND), missing, 1)
    assert isinstance(taken_back, Transition)
    [changed] = [event for event in history_of(taken_back.job).events if event.data.get("cause") == "requeued"]
    assert (changed.actor, changed.data["reason"]) == (Actor("system"), "not_held")
    handed_back = nack(held, Failure(message="stop", requeue=True), ANYONE, at(SECOND)).job
    assert history_of(handed_back).events[-1].actor == Actor("worker", "w")


def test_a_change_that_leaves_the_state_is_none_of_the_documents_events() -> None:
    assert types(reprioritise(available(), 5, at()).job) == ["job.created"]


def test_a_job_that_has_moved_was_created_where_it_was_pushed() -> None:
    moved = move(available(queue="first"), "second", at()).job
    assert told(moved)[0][1]["queue"] == "first"


def test_a_member_of_a_workflow_tells_its_step_and_was_created_by_the_system() -> None:
    member = Membership(id="wf", node=1, kind="chain", step="s", index=1, size=3)
    job = completed(workflow=member)
    assert told(job)[-1] == ("workflow.step_completed", {"workflow_id": "wf", "step_index": 1, "job_id": "job-1"})
    assert history_of(job).events[0].actor == Actor("system")


def test_a_job_is_not_told_what_another_did_under_its_id() -> None:
    tombstone = delete(dead_letter(), at()).job
    again = push(replace(draft(), transitions=tombstone.transitions), at()).job
    assert types(again) == ["job.created"]
    assert attempts_of(again) == []


def test_a_log_that_has_lost_its_beginning_says_so() -> None:
    job = available()
    for round_ in range(KEPT):
        job = reprioritise(job, round_ % 2 + 1, at()).job
    assert history_of(claim(job, "w", None, at()).job).complete is False


@pytest.mark.parametrize("job", [available(), retryable(), completed(), dead_letter()])
def test_ids_of_events_stay_what_they_were(job: Job) -> None:
    earlier = [one.id for one in history_of(job).events]
    ended = job if job.terminal else cancel(job, at()).job
    assert [one.id for one in history_of(ended).events][: len(earlier)] == earlier
