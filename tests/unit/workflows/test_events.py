from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import CALLED_OFF, NOTHING, Job, Membership, Retry, State
from ojs_engine.domain.transitions import Failure, JobHolder, Moment, ack, cancel, claim, nack, push
from ojs_features.workflows.events import events_of_workflow
from ojs_features.workflows.record import StepError, Workflow, WorkflowEntry
from support.events import all_events_of

WF = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
AT = 1_800_000_000_000


def member(**more: Any) -> Job:
    place: dict[str, Any] = {"id": WF, "node": 2, "name": "orders", "kind": "chain", "step": "charge", "index": 1, "size": 4}
    workflow = Membership(**(place | more))
    return Job(id="j", type="pay", args=Raw(b"[]"), state=State.AVAILABLE, retry=Retry(max_attempts=1), workflow=workflow)


def told(job: Job) -> list[tuple[str, dict[str, Any]]]:
    """The events of workflows in the last entry of a job's log."""
    events = all_events_of(job, job.transitions[-1])
    assert all(event.subject == WF for event in events if event.type.startswith("workflow."))
    return [(event.type, event.data) for event in events if event.type.startswith("workflow.")]


def ran(job: Job) -> Job:
    pushed = push(job, Moment(AT, "a")).job
    return claim(pushed, "w", None, Moment(AT + 10, "b")).job


@pytest.mark.parametrize(("kind", "what"), [("chain", "step"), ("dag", "step"), ("group", "job"), ("batch", "job")])
def test_the_end_of_a_member_is_an_event_of_its_workflow(kind: str, what: str) -> None:
    done = ack(ran(member(kind=kind)), NOTHING, JobHolder(), Moment(AT + 510, "c")).job
    ((event_type, data),) = told(done)
    assert event_type == f"workflow.{what}_completed"
    expected = {
        "workflow_id": WF,
        "workflow_name": "orders",
        "workflow_type": kind,
        "step_id": "charge",
        "step_index": 1,
        "step_type": "pay",
        "job_id": "j",
        "duration_ms": 500,
        "steps_remaining": 2,
    }
    assert expected.items() <= data.items()


def test_a_failed_member_says_why() -> None:
    failed = nack(ran(member()), Failure(message="card refused", code="declined"), JobHolder(), Moment(AT + 20, "c")).job
    ((event_type, data),) = told(failed)
    assert (event_type, data["error"]) == ("workflow.step_failed", {"code": "declined", "message": "card refused"})


def test_only_a_member_that_is_cancelled_by_itself_has_failed() -> None:
    pushed = push(member(), Moment(AT, "a")).job
    ((event_type, data),) = told(cancel(pushed, Moment(AT + 1, "b"), "not wanted").job)
    assert (event_type, data["error"]["message"]) == ("workflow.step_failed", "not wanted")
    assert told(cancel(pushed, Moment(AT + 1, "b"), CALLED_OFF).job) == []


def test_the_first_claim_is_the_start_and_told_once() -> None:
    first = ran(member(opens=3))
    ((event_type, data),) = told(first)
    assert (event_type, data["total_steps"], data["workflow_name"]) == ("workflow.started", 3, "orders")
    again = nack(first, Failure(message="later", requeue=True), JobHolder(), Moment(AT + 20, "c")).job
    assert told(claim(again, "w", None, Moment(AT + 30, "d")).job) == []
    assert events_of_workflow(RECORD, WorkflowEntry(n=2, op="x", event="started", at=AT, opener=True)) == []


def test_a_callback_is_fired_when_it_is_queued() -> None:
    pushed = push(member(kind="batch", callback="on_failure", step="on_failure"), Moment(AT, "a")).job
    ((event_type, data),) = told(pushed)
    assert (event_type, data["callback"]) == ("workflow.callback_fired", "on_failure")
    assert told(push(member(kind="batch"), Moment(AT, "a")).job) == []


def test_a_member_revived_by_hand_is_not_its_workflows_any_more() -> None:
    done = ack(ran(replace(member(), generation=1)), NOTHING, JobHolder(), Moment(AT + 20, "c")).job
    assert told(done) == []


RECORD = Workflow(id=WF, name="orders", kind="chain", steps=3, states="F", created_at=AT, started_at=AT + 100)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("created", {"workflow_type": "chain", "workflow_name": "orders", "total_steps": 3}),
        ("started", {"workflow_name": "orders", "total_steps": 3}),
        ("completed", {"total_steps": 3, "duration_ms": 900}),
        ("cancelled", {"workflow_name": "orders"}),
        ("failed", {"failed_step_id": "charge", "failed_step_type": "pay", "error": {"code": "no", "message": "it failed"}}),
    ],
)
def test_the_workflows_own_events_have_what_is_required(event: str, expected: dict[str, Any]) -> None:
    error = StepError(node=2, step="charge", type="pay", code="no", message="it failed", at=AT)
    entry = WorkflowEntry(n=4, op="x", event=event, at=AT + 1_000)
    (found,) = events_of_workflow(replace(RECORD, errors=(error,)), entry)
    assert (found.type, found.subject, found.data["workflow_id"]) == (f"workflow.{event}", WF, WF)
    assert expected.items() <= found.data.items()
    assert [found] == events_of_workflow(replace(RECORD, errors=(error,), states="X"), entry), "the same again, id included"


def test_a_nested_workflow_ends_as_a_step() -> None:
    entry = WorkflowEntry(n=4, op="x", event="step_completed", at=AT + 400, step="fan", kind="group", index=1, left=1)
    (found,) = events_of_workflow(RECORD, entry)
    assert found.type == "workflow.step_completed"
    expected = {"step_id": "fan", "step_type": "group", "step_index": 1, "steps_remaining": 1, "duration_ms": 300}
    assert expected.items() <= found.data.items()
