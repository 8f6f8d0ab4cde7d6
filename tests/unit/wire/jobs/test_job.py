from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_api import jobs as contract
from ojs_engine.domain.job import NOTHING, Job, JobError, Retry, State
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.members import encode

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
    shown = read(encode(job_view(job)))
    assert shown.keys() <= {*contract.Job.__struct_encode_fields__, *job.extra}, "each is a member of the contract"
    return shown


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


def test_attempts_that_were_handed_back_are_counted_apart() -> None:
    assert view(replace(FRESH, attempt=3, uncharged=2))["uncounted_attempts"] == 2
    assert "uncounted_attempts" not in view(replace(FRESH, attempt=3))


def test_a_null_result_is_a_result() -> None:
    job = replace(FRESH, state=State.COMPLETED, attempt=1, result=Raw(b"null"), result_stored_at=AT)
    assert '"result":null' in encode(job_view(job)).decode()
