from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_engine.domain.job import Job, JobError, State
from ojs_engine.wire.jobs.results import job_result, without_expired_result
from ojs_engine.wire.members import encode

AT = 1_770_000_000_000
AT_TEXT = "2026-02-02T02:40:00.000Z"
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
FRESH = Job(id=ID, type="a.b", args=Raw(b"[1]"), state=State.AVAILABLE, created_at=AT, enqueued_at=AT)
ERROR = JobError(code="handler_error", type="ValueError", message="no", attempt=1, at=AT)


def read(answer: Struct) -> Any:
    return msgspec.json.decode(encode(answer))


def test_results_leave_when_their_time_is_over() -> None:
    job = replace(FRESH, state=State.COMPLETED, result=Raw(b"1"), result_stored_at=AT, result_ttl_s=60)
    assert without_expired_result(job, AT + 59_999) is job
    assert not without_expired_result(job, AT + 60_000).result
    assert without_expired_result(replace(job, result_ttl_s=-1), AT * 2).result
    week = 604_800_000
    assert without_expired_result(replace(job, result_ttl_s=None), AT + week - 1).result
    assert not without_expired_result(replace(job, result_ttl_s=None), AT + week).result
    assert read(job_result(job)) == {"job_id": ID, "state": "completed", "result": 1}
    assert read(job_result(replace(FRESH, error=ERROR)))["error"]["type"] == "ValueError"
    assert read(job_result(FRESH))["result"] is None
