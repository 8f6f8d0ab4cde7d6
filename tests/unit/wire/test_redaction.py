from __future__ import annotations

import json
from typing import Any

import pytest

from ojs_engine.wire.redaction import hidden, redacted

JOB = {"specversion": "1.0", "id": "1", "type": "a.b", "state": "discarded", "queue": "q", "attempt": 2}
SECRET = "a secret"


def seen(answer: object) -> Any:
    return json.loads(redacted(json.dumps(answer).encode()))


@pytest.mark.parametrize(
    "answer",
    [
        {"job": {**JOB, "args": [SECRET], "meta": {"a": SECRET}, "result": SECRET}},
        {"job": {**JOB, "args": [], "x_own": SECRET}},
        {"errors": [{"code": "e", "type": "E", "message": SECRET, "details": SECRET, "backtrace": [SECRET]}]},
        {"retries": [{"attempt": 1, "code": "e", "type": "E", "error": SECRET}]},
        {"job_id": "1", "progress": 0.5, "message": SECRET, "data": {"a": SECRET}},
        {"source": "s", "job_id": "1", "data": {"job_id": "1", "progress_message": SECRET, "data": {"a": SECRET}}},
        {"source": "s", "job_id": "1", "data": {"job_id": "1", "progress_message": SECRET, "message": SECRET}},
        {"error": {"code": "duplicate", "message": "m", "details": {"unique_key": SECRET}}},
        {"timeline": [{"number": 2, "event": "cancelled", "from": "active", "reason": SECRET}]},
        {"snapshots": [{"phase": "cancelled", "state": "cancelled", "at": "t", "error": SECRET}]},
        {"event_type": "job.state_changed", "data": {"to": "cancelled", "cause": "cancelled", "reason": SECRET}},
        {"event_type": "job.cancelled", "data": {"reason": SECRET}},
        {"specversion": "1.0", "type": "job.cancelled", "source": "s", "data": {"job_id": "1", "reason": SECRET}},
        {"type": "workflow.job_failed", "data": {"step_id": "a", "error": {"code": "cancelled", "message": SECRET}}},
        {"workflow": {"id": "w", "name": "", "state": "running", "created_at": "t", "metadata": {}, "ext_a": SECRET}},
        {"steps": [{"id": "0", "index": 0, "state": "waiting", "depends_on": [], "x_a": SECRET}]},
        {"crons": [{"expression": "@daily", "overlap_policy": "skip", "job_template": {}, "ext_a": SECRET}]},
        {"subscription": {"url": "https://example.org", "events": ["*"], "ext_a": SECRET}},
        {
            "items": [
                [
                    {
                        "metadata": {"a": SECRET},
                        "checkpoint": {"state": SECRET},
                        "parent_results": [SECRET],
                        "parent_results_by_index": {"0": SECRET},
                    }
                ]
            ]
        },
    ],
)
def test_what_jobs_carry_is_left_out_and_named(answer: object) -> None:
    shown = seen(answer)
    assert SECRET not in json.dumps(shown)
    assert '"redacted"' in json.dumps(shown)


def test_everything_else_stays_as_it_is() -> None:
    body = b'{"id":"1","number":1e400,"large":123456789012345678901234567890,"list":[1.10,null]}'
    assert redacted(body) == body
    assert redacted(b"# HELP metrics\n") == b"# HELP metrics\n"
    assert redacted(b"") == b""


def test_an_absent_member_isn_t_said_to_be_hidden() -> None:
    assert seen({**JOB, "args": [1]}) == {**JOB, "redacted": ["args"]}
    assert seen(JOB) == JOB


@pytest.mark.parametrize(
    "answer",
    [
        {"timeline": [{"number": 2, "event": "dropped", "reason": "overflow"}]},
        {"snapshots": [{"phase": "timed_out", "state": "retryable", "error": "timeout"}]},
        {"type": "worker.stopped", "data": {"worker_id": "w", "reason": "signal"}},
        {"items": [{"index": 0, "job_id": "1", "status": "skipped", "reason": "the job is cancelled"}]},
        {"reasons": [{"code": "cancelled", "message": "It was cancelled."}]},
        {"config": {"max_size": 1, "ext_vendor": "of a setting"}, "by_type": {"x_type": 5}},
    ],
)
def test_reasons_that_the_server_gives_are_shown(answer: object) -> None:
    assert seen(answer) == answer


def test_a_refusal_keeps_its_words() -> None:
    refusal = {"error": {"code": "conflict", "type": "x", "message": "why", "hint": "do", "details": {"field": "x"}}}
    assert seen(refusal) == refusal
    assert hidden({"code", "message", "details"}) == set()
