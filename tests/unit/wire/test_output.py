from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_core.base.errors import CODES, OjsError, conflict, duplicate, invalid, not_found
from ojs_core.domain.job import NOTHING, Job, JobError, Retry, State
from ojs_core.wire.errors import error_body
from ojs_core.wire.output import (
    ack_body,
    encode,
    fetch_body,
    heartbeat_body,
    job_body,
    job_view,
    nack_body,
    registered_body,
    result_view,
    without_expired_result,
)

AT = 1_770_000_000_000
AT_TEXT = "2026-02-02T02:40:00.000Z"
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
FRESH = Job(id=ID, type="a.b", args=Raw(b"[1]"), state=State.AVAILABLE, created_at=AT, enqueued_at=AT)
ERROR = JobError(
    code="handler_error", type="ValueError", message="no", attempt=1, at=AT, retryable=True, details=Raw(b'{"a":1}')
)


def read(body: bytes) -> Any:
    return msgspec.json.decode(body)


def view(job: Job) -> Any:
    return read(encode(job_view(job)))


def test_a_fresh_job() -> None:
    assert view(FRESH) == {
        "specversion": "1.0",
        "id": ID,
        "type": "a.b",
        "state": "available",
        "queue": "default",
        "args": [1],
        "meta": {},
        "priority": 0,
        "tags": [],
        "attempt": 0,
        "max_attempts": 3,
        "timeout_ms": 1_800_000,
        "visibility_timeout_ms": 1_800_000,
        "retry": {
            "max_attempts": 3,
            "initial_interval": "PT1S",
            "backoff_coefficient": 2.0,
            "max_interval": "PT5M",
            "jitter": True,
            "non_retryable_errors": [],
            "on_exhaustion": "discard",
            "backoff_strategy": "exponential",
        },
        "created_at": AT_TEXT,
        "enqueued_at": AT_TEXT,
    }


def test_a_job_with_everything_shows_everything_and_no_null() -> None:
    job = replace(
        FRESH,
        state=State.COMPLETED,
        meta=Raw(b'{"m":1}'),
        tags=("t",),
        schema="urn:x",
        retry=Retry(max_attempts=5),
        timeout_ms=30_000,
        timeout_in_seconds=True,
        visibility_timeout_ms=5_000,
        total_timeout_ms=60_000,
        enqueue_ttl_ms=1_500,
        heartbeat_timeout_ms=10_000,
        grace_period_ms=0,
        result_ttl_s=60,
        result_size_limit=100,
        unique=Raw(b'{"keys":["type"]}'),
        rate_limit=Raw(b'{"max_per_second":1}'),
        metadata=Raw(b'{"x":1}'),
        verbatim={"expires_at": "2099-01-01T00:00:00+01:00", "scheduled_at": "2026-01-01T00:00:00Z"},
        extra={"x_custom": Raw(b"[1,  2]"), "state": Raw(b'"forged"')},
        attempt=2,
        worker="w",
        result=Raw(b'{"ok":true}'),
        error=ERROR,
        errors=(ERROR, replace(ERROR, retryable=None, details=NOTHING, backtrace=Raw(b'"bt"'), generation=1)),
        retry_delay_ms=1_000,
        scheduled_at=AT,
        expires_at=AT,
        activated_at=AT,
        started_at=AT,
        completed_at=AT,
        re_enqueued_at=AT,
        next_attempt_at=AT,
        result_stored_at=AT,
    )
    shown = view(job)
    assert b"null" not in encode(job_view(job))
    entry = {
        "code": "handler_error",
        "type": "ValueError",
        "message": "no",
        "attempt": 1,
        "occurred_at": AT_TEXT,
        "timestamp": AT_TEXT,
    }
    expected = {
        "state": "completed",
        "meta": {"m": 1},
        "tags": ["t"],
        "schema": "urn:x",
        "max_attempts": 5,
        "timeout_ms": 30_000,
        "timeout": 30,
        "visibility_timeout_ms": 5_000,
        "total_timeout": 60,
        "enqueue_ttl": 1.5,
        "heartbeat_timeout": 10,
        "grace_period": 0,
        "result_ttl": 60,
        "result_size_limit": 100,
        "unique": {"keys": ["type"]},
        "rate_limit": {"max_per_second": 1},
        "metadata": {"x": 1},
        "x_custom": [1, 2],
        "attempt": 2,
        "worker_id": "w",
        "result": {"ok": True},
        "result_size_bytes": 11,
        "result_stored_at": AT_TEXT,
        "result_expires_at": "2026-02-02T02:41:00.000Z",
        "error": entry | {"retryable": True, "details": {"a": 1}},
        "errors": [entry | {"retryable": True, "details": {"a": 1}}, entry | {"backtrace": "bt", "retry_generation": 1}],
        "retry_delay_ms": 1_000,
        "scheduled_at": "2026-01-01T00:00:00Z",
        "expires_at": "2099-01-01T00:00:00+01:00",
        "activated_at": AT_TEXT,
        "started_at": AT_TEXT,
        "completed_at": AT_TEXT,
        "re_enqueued_at": AT_TEXT,
        "next_attempt_at": AT_TEXT,
        "next_retry_at": AT_TEXT,
    }
    assert {name: shown.get(name) for name in expected} == expected


def test_no_seconds_are_invented_for_a_client_that_sent_milliseconds() -> None:
    assert "timeout" not in view(replace(FRESH, timeout_ms=30_000))


@pytest.mark.parametrize(
    "job",
    [
        replace(FRESH, state=State.SCHEDULED, enqueued_at=None, scheduled_at=AT),
        replace(FRESH, state=State.PENDING, enqueued_at=None),
        replace(FRESH, state=State.CANCELLED, cancelled_at=AT),
        replace(FRESH, state=State.DISCARDED, expires_at=AT, discarded_at=AT, error=ERROR, errors=(ERROR,)),
        replace(FRESH, generation=1, errors=(ERROR,), re_enqueued_at=AT),
        replace(FRESH, uncharged=1, attempt=1),
        replace(FRESH, activated_at=AT),
    ],
)
def test_no_time_and_no_error_is_left_out(job: Job) -> None:
    shown = view(job)
    for name in ("activated_at", "enqueued_at", "scheduled_at", "cancelled_at", "discarded_at", "expires_at", "re_enqueued_at"):
        assert (shown.get(name) is not None) == (getattr(job, name) is not None)
    assert len(shown.get("errors", [])) == len(job.errors)


def test_a_null_result_is_a_result() -> None:
    job = replace(FRESH, state=State.COMPLETED, attempt=1, result=Raw(b"null"), result_stored_at=AT)
    assert '"result":null' in encode(job_view(job)).decode()


def test_the_flat_copy_stands_beside_the_wrapper() -> None:
    body = read(job_body(FRESH, flat=True, previous_state=State.PENDING))
    assert body["id"] == body["job"]["id"] == ID
    assert body["previous_state"] == body["job"]["previous_state"] == "pending"
    assert set(read(job_body(FRESH))) == {"job"}


def test_the_answers_to_workers() -> None:
    done = replace(FRESH, state=State.COMPLETED, attempt=1, completed_at=AT)
    answer = read(ack_body(done))
    assert answer["acknowledged"] is True
    assert (answer["id"], answer["job_id"], answer["state"], answer["completed_at"]) == (ID, ID, "completed", AT_TEXT)
    assert answer["job"]["state"] == "completed"

    failed = replace(FRESH, state=State.RETRYABLE, attempt=1, next_attempt_at=AT, retry_delay_ms=5)
    answer = read(nack_body(failed))
    assert (answer["id"], answer["job_id"], answer["attempt"], answer["max_attempts"]) == (ID, ID, 1, 3)
    assert (answer["next_attempt_at"], answer["retry_delay_ms"]) == (AT_TEXT, 5)

    assert read(fetch_body([])) == {"jobs": []}
    assert [job["id"] for job in read(fetch_body([FRESH, FRESH]))["jobs"]] == [ID, ID]
    beat = {"acknowledged": True, "state": "running", "jobs_extended": [ID], "server_time": AT_TEXT}
    assert read(heartbeat_body("running", [ID], [], AT)) == beat
    assert read(heartbeat_body("running", [ID], ["x"], AT)) == beat | {"cancelled_jobs": ["x"]}
    assert read(registered_body("w", AT)) == {
        "ok": True,
        "worker_id": "w",
        "server_time": AT_TEXT,
        "heartbeat_interval": 5,
        "heartbeat_timeout": 30,
        "visibility_timeout_default": 1_800,
    }


def test_results_leave_when_their_time_is_over() -> None:
    job = replace(FRESH, state=State.COMPLETED, result=Raw(b"1"), result_stored_at=AT, result_ttl_s=60)
    assert without_expired_result(job, AT + 59_999) is job
    assert not without_expired_result(job, AT + 60_000).result
    assert without_expired_result(replace(job, result_ttl_s=-1), AT * 2).result
    week = 604_800_000
    assert without_expired_result(replace(job, result_ttl_s=None), AT + week - 1).result
    assert not without_expired_result(replace(job, result_ttl_s=None), AT + week).result
    assert read(encode(result_view(job))) == {"job_id": ID, "state": "completed", "result": 1}
    assert read(encode(result_view(replace(FRESH, error=ERROR))))["error"]["type"] == "ValueError"
    assert read(encode(result_view(FRESH)))["result"] is None


@pytest.mark.parametrize("code", CODES)
def test_every_error_has_the_members_that_clients_read(code: str) -> None:
    error = read(error_body(OjsError(code, "words", details={"a": 1}), "req_1"))["error"]
    expected = {"invalid_retry_policy": "invalid_request", "queue_full": "QUEUE_FULL"}.get(code, code)
    assert (error["code"], error["message"], error["details"], error["request_id"]) == (expected, "words", {"a": 1}, "req_1")
    assert error["retryable"] is CODES[code].retryable
    assert error["docs_url"] == error["doc_url"] == f"https://openjobspec.org/errors/{CODES[code].canonical}"
    assert error["hint"]
    assert (error["canonical_code"], error["ojs_code"]) == (CODES[code].canonical, CODES[code].number)
    assert "type" not in error


def test_details_name_what_clients_branch_on() -> None:
    def details(error: OjsError) -> Any:
        return read(error_body(error, "r"))["error"]["details"]

    assert details(not_found("job", ID)) == {"resource_type": "job", "resource_id": ID}
    assert details(duplicate(ID, "active")) == {"existing_job_id": ID, "existing_job_state": "active"}
    assert details(conflict("no", ID, "active", "pending")) == {
        "job_id": ID,
        "current_state": "active",
        "expected_state": "pending",
    }
    assert details(invalid("queue", "queue is bad"))["validation_errors"] == [{"path": "queue", "message": "queue is bad"}]
    typed = OjsError("invalid_retry_policy", "m", type="validation_error")
    assert read(error_body(typed, "r"))["error"]["type"] == "validation_error"
