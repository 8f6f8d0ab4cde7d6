"""Pages of a job's history, its lineage and its attempts, as clients read them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, Membership
from ojs_engine.domain.transitions import claim, reprioritise
from ojs_engine.domain.transitions.log import KEPT
from ojs_engine.wire.pages import Page
from ojs_features.history.answers import attempt_trace, failure_answer, history_page, job_lineage, job_traces
from support.tables import each
from unit.domain.transitions.samples import active, at, available, completed, dead_letter, draft


def view(job: Job, limit: int = 50, cursor: str | None = None) -> dict[str, Any]:
    page: dict[str, Any] = msgspec.to_builtins(history_page(job, Page(limit, cursor)))
    return page


def test_pages_follow_each_other_without_gap_or_repetition() -> None:
    job = dead_letter()
    everything = view(job)
    assert "next_cursor" not in everything
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = view(job, 2, cursor)
        assert page["total"] == everything["total"]
        found += page["events"]
        if (cursor := page.get("next_cursor")) is None:
            break
    assert found == everything["events"]
    first, started = found[0], found[2]
    assert (first["event_type"], first["job_id"], first["timestamp"]) == ("job.created", "job-1", "2027-01-15T08:00:00.000Z")
    assert "actor" not in first
    assert started["actor"] == {"type": "worker", "id": "w1"}


def test_a_cursor_goes_on_when_what_it_names_has_left_the_log() -> None:
    job = available()
    for round_ in range(KEPT):
        job = reprioritise(job, round_ % 2 + 1, at()).job
    job = claim(job, "w", None, at()).job
    page = view(job, cursor="1.0")
    assert page["complete"] is False
    assert [event["event_type"] for event in page["events"]] == ["job.state_changed", "job.attempt_started"]


@each("cursor", ["x", "0.0", "1", "1.", "9.0", "-1.0", "1.10", "٣.0", "1.0 ", "99999999999.0"])
def test_a_cursor_that_no_page_gave_is_refused(cursor: str) -> None:
    with pytest.raises(OjsError, match="cursor must be the next_cursor of a page of this job's history") as refused:
        view(active(), cursor=cursor)
    assert (refused.value.code, refused.value.details["field"]) == ("invalid_request", "cursor")


def test_lineage_is_what_the_client_said_and_the_workflow() -> None:
    told = draft(extra={"parent_id": Raw(b'"p"'), "root_id": Raw(b'"r"'), "workflow_id": Raw(b'"own"')})
    assert msgspec.to_builtins(job_lineage(told)) == {"job_id": "job-1", "parent_id": "p", "root_id": "r", "workflow_id": "own"}
    member = draft(workflow=Membership(id="wf", node=1, kind="chain", step="s2", index=1, size=3))
    assert msgspec.to_builtins(job_lineage(member)) == {"job_id": "job-1", "workflow_id": "wf", "workflow_step": "s2"}
    assert msgspec.to_builtins(job_lineage(draft(extra={"parent_id": Raw(b"7")}))) == {"job_id": "job-1"}


def test_attempts_are_told_with_their_trace() -> None:
    traced = completed(meta=Raw(b'{"trace_id":"t"}'))
    assert msgspec.to_builtins(job_traces(traced)) == {
        "job_id": "job-1",
        "trace_id": "t",
        "traces": [
            {
                "attempt": 1,
                "started_at": "2027-01-15T08:00:00.000Z",
                "worker_id": "w1",
                "ended_at": "2027-01-15T08:00:00.000Z",
                "duration_ms": 0,
                "outcome": "acked",
                "state": "completed",
            }
        ],
    }
    failed = msgspec.to_builtins(attempt_trace(dead_letter(), "1"))["trace"]
    assert failed["error"] == {"code": "handler_error", "type": "handler_error", "message": "no"}


@pytest.mark.parametrize("number", ["0", "x", "-1", "1.0", "01", "1" * 10, "٣"])
def test_an_attempt_that_is_no_number_is_refused(number: str) -> None:
    with pytest.raises(OjsError, match="attempt must be a whole number from 1"):
        attempt_trace(active(), number)


def test_an_attempt_that_was_not_is_not_found() -> None:
    with pytest.raises(OjsError) as refused:
        attempt_trace(active(), "2")
    assert (refused.value.code, refused.value.details) == ("not_found", {"resource_type": "attempt", "resource_id": "2"})


def test_a_failure_leaves_out_the_stack_trace() -> None:
    error = {"code": "c", "type": "T", "message": "m", "retryable": True, "stack_trace": "a\nb"}
    data = {"job_id": "j", "job_type": "a.b", "queue": "q", "state": "retryable", "attempt": 2, "error": error}
    shown = msgspec.to_builtins(failure_answer(msgspec.json.encode({"time": "2027-01-15T08:00:00.000Z", "data": data})))
    assert shown["error"] == {"code": "c", "type": "T", "message": "m"}
    assert (shown["failed_at"], shown["attempt"], shown["state"]) == ("2027-01-15T08:00:00.000Z", 2, "retryable")
