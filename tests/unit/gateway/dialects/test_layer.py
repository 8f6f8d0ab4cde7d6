from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_api.jobs import AdminChangedJob, OneJob
from ojs_engine.domain.job import Job, State
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.workers.answers import acknowledged
from ojs_gateway.dialects.layer import answer_body, redacted_body
from ojs_index.lists.jobs import BareJobDetail, job_detail

JOB = Job(id="019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", type="a.b", args=Raw(b"[1]"), state=State.AVAILABLE)
WITH_EXTRA = replace(JOB, extra={"x_custom": Raw(b"[1]")})


def read(answer: Struct, reader: Reader) -> Any:
    return msgspec.json.decode(answer_body(answer, reader))


@pytest.mark.parametrize("job", [JOB, WITH_EXTRA])
def test_the_flat_copy_stands_beside_the_wrapper(job: Job) -> None:
    answer = OneJob(job_view(job, previous_state=State.PENDING))
    body = read(answer, "cli")
    assert body["previous_state"] == body["job"]["previous_state"] == "pending"
    assert {name: value for name, value in body.items() if name != "job"} == body["job"]
    for reader in ("standard", "sdk", "ui"):
        assert set(read(answer, reader)) == {"job"}
    assert read(AdminChangedJob(answer.job), "ui") == body


def test_only_sdks_read_the_id_of_a_job_that_has_ended_twice() -> None:
    done = acknowledged(replace(JOB, state=State.COMPLETED))
    assert read(done, "sdk") == read(done, "standard") | {"job_id": JOB.id}


@pytest.mark.parametrize("job", [JOB, WITH_EXTRA])
def test_the_detail_has_what_command_line_and_admin_ui_show(job: Job) -> None:
    answer = BareJobDetail(job_detail(replace(job, metadata=Raw(b'{"sent":1}'))))
    bare = read(answer, "standard")
    assert (bare["id"], bare.get("x_custom")) == (JOB.id, [1] if job.extra else None)
    assert read(answer, "cli")["options"]["retry"] == bare["retry"]
    shown = read(answer, "ui")
    assert shown["retry_policy"] == bare["retry"]
    assert shown["metadata"] == {
        "sent": 1,
        "created_at": bare["created_at"],
        **dict.fromkeys(("enqueued_at", "started_at", "scheduled_at", "completed_at", "cancelled_at", "discarded_at")),
    }


@pytest.mark.parametrize("meta", [Raw(b'{"tenant":"acme"}'), None])
def test_the_admin_ui_has_a_meta_to_count_where_payloads_are_left_out(meta: Raw | None) -> None:
    answer = BareJobDetail(job_detail(replace(JOB, meta=meta)))
    shown = msgspec.json.decode(redacted_body(answer, "ui"))
    assert (shown["id"], shown["meta"]) == (JOB.id, {})
    assert shown.keys().isdisjoint({"args", "metadata"})
    assert set(shown["redacted"]) >= {"args", "metadata"}
    for reader in ("standard", "sdk", "cli"):
        assert "meta" not in msgspec.json.decode(redacted_body(answer, reader))
