from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_engine.domain.job import Job, State
from ojs_engine.domain.worker import Mark
from ojs_engine.wire.members import encode
from ojs_engine.wire.workers.answers import acknowledged, fetched_jobs, heartbeat_answer, nacked, registered

AT = 1_770_000_000_000
AT_TEXT = "2026-02-02T02:40:00.000Z"
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
FRESH = Job(id=ID, type="a.b", args=Raw(b"[1]"), state=State.AVAILABLE, created_at=AT, enqueued_at=AT)


def read(answer: Struct) -> Any:
    return msgspec.json.decode(encode(answer))


def test_the_answers_to_workers() -> None:
    done = replace(FRESH, state=State.COMPLETED, attempt=1, completed_at=AT)
    answer = read(acknowledged(done))
    assert answer["acknowledged"] is True
    assert (answer["id"], answer["state"], answer["completed_at"]) == (ID, "completed", AT_TEXT)
    assert answer["job"]["state"] == "completed"

    failed = replace(FRESH, state=State.RETRYABLE, attempt=1, next_attempt_at=AT, retry_delay_ms=5)
    answer = read(nacked(failed))
    assert (answer["id"], answer["attempt"], answer["max_attempts"]) == (ID, 1, 3)
    assert (answer["next_attempt_at"], answer["retry_delay_ms"]) == (AT_TEXT, 5)

    assert read(fetched_jobs([])) == {"jobs": []}
    assert [job["id"] for job in read(fetched_jobs([FRESH, FRESH]))["jobs"]] == [ID, ID]
    beat = {"acknowledged": True, "state": "running", "jobs_extended": [ID], "server_time": AT_TEXT, "mark": f"7-{AT}"}
    assert read(heartbeat_answer("running", [ID], [], Mark(7, AT))) == beat
    assert read(heartbeat_answer("running", [ID], ["x"], Mark(7, AT))) == beat | {"cancelled_jobs": ["x"]}
    assert read(registered("w", Mark(7, AT))) == {
        "ok": True,
        "mark": f"7-{AT}",
        "worker_id": "w",
        "server_time": AT_TEXT,
        "heartbeat_interval": 5,
        "heartbeat_timeout": 30,
        "visibility_timeout_default": 1_800,
    }
