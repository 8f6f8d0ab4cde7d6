from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import JobHolder
from ojs_engine.wire.members import encode
from ojs_features.progress.bodies import (
    ProgressReport,
    parse_progress,
    progress_answer,
    progress_event,
    progress_frame,
    reported_progress,
)
from ojs_features.progress.rules import ProgressRecord
from support.tables import each

ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
JOB = Job(id=ID, type="t", args=Raw(b"[]"), queue="q", state=State.ACTIVE, attempt=1, worker="w")
HALF = ProgressRecord(job_id=ID, attempt=1, at=1_800_000_000_000, op="o", fraction=0.5, message="m", data=Raw(b'{"a":1}'))


def parse(body: dict[str, Any], job_id: str | None = ID) -> ProgressReport:
    return parse_progress(json.dumps(body).encode(), DEFAULT_LIMITS, job_id)


@each(
    ("body", "fraction"),
    [
        ({"progress": 0.47}, 0.47),
        ({"progress": 1}, 1.0),
        ({"progress": 1.5}, 1.0),
        ({"progress": -3}, 0.0),
        ({"percentage": 47}, 0.47),
        ({"percentage": 250.5}, 1.0),
        ({"percentage": -1}, 0.0),
        ({"percentage": 10**400}, 1.0),
        ({"progress": -(10**400)}, 0.0),
        ({"progress": 0.5, "percentage": 90}, 0.5),
        ({"data": {"rows": 1}}, None),
    ],
)
def test_both_scales_are_read_and_what_is_beyond_counts_as_the_end(body: dict[str, Any], fraction: float | None) -> None:
    assert parse(body).report.fraction == fraction


def test_what_sdks_send_is_read() -> None:
    sent = {"job_id": ID, "percentage": 50, "message": "half", "data": {"rows": 1}}
    found = parse(sent, None)
    assert found.job_id == ID
    assert (found.report.message, bytes(found.report.data), found.holder) == ("half", b'{"rows": 1}', JobHolder())
    assert parse({"progress": 0, "worker_id": "w", "attempt": 3}).holder == JobHolder("w", 3)


@each(
    ("body", "code", "words"),
    [
        ({}, "invalid_request", "progress (0 to 1), percentage (0 to 100) or data is required"),
        ({"message": "m"}, "invalid_request", "or data is required"),
        ({"progress": "0.5"}, "invalid_request", "progress must be a number from 0 to 1"),
        ({"data": {"a": "x" * 5_000}}, "metadata_too_large", "the limit is 4096 bytes"),
        ({"progress": 1, "message": "x" * 1_025}, "invalid_request", "message must be a text of up to 1024 characters"),
        ({"progress": 1, "checkpoint": {"a": 1}}, "unsupported", "checkpoint is not taken with progress"),
    ],
)
def test_a_report_that_means_nothing_is_refused(body: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse(body)
    assert refused.value.code == code
    assert words in refused.value.message


def test_the_job_has_to_be_named() -> None:
    with pytest.raises(OjsError, match="job_id is required"):
        parse({"progress": 1}, None)
    with pytest.raises(OjsError):
        parse({"progress": 1, "job_id": "x"}, None)


def test_answers_say_null_where_nothing_was_told() -> None:
    nothing = msgspec.json.decode(msgspec.json.encode(progress_answer(JOB, None)))
    assert nothing == {"job_id": ID, "state": "active", "attempt": 1, "progress": None, "data": None, "updated_at": None}
    told = msgspec.json.decode(msgspec.json.encode(reported_progress(JOB, HALF, accepted=True)))
    assert told == {
        "job_id": ID,
        "state": "active",
        "attempt": 1,
        "progress": 0.5,
        "percentage": 50.0,
        "message": "m",
        "data": {"a": 1},
        "updated_at": "2027-01-15T08:00:00.000Z",
        "accepted": True,
    }


def test_the_event_names_job_worker_and_both_scales() -> None:
    told = {"progress": 0.5, "progress_percent": 50.0, "progress_message": "m", "message": "m", "data": Raw(b'{"a":1}')}
    of_job = {"job_id": ID, "job_type": "t", "queue": "q", "attempt": 1, "worker_id": "w"}
    assert progress_event(JOB, HALF) == of_job | told


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (State.ACTIVE, b"progress"),
        (State.RETRYABLE, b"progress"),
        (State.COMPLETED, b"completed"),
        (State.CANCELLED, b"cancelled"),
        (State.DISCARDED, b"failed"),
    ],
)
def test_a_frame_is_named_after_what_has_become_of_the_job(state: State, name: bytes) -> None:
    job = msgspec.structs.replace(JOB, state=state)
    frame = progress_frame(encode(progress_answer(job, HALF)), job, named=True)
    assert frame.startswith(b"event: " + name + b"\ndata: {")
    assert frame.endswith(b"}\n\n")
    assert progress_frame(encode(progress_answer(job, HALF)), job, named=False).startswith(b"data: {")
