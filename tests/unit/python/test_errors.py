"""The server's refusals are types."""

from __future__ import annotations

import json

import pytest

from ojs_engine.base.errors import CODES
from ojs_nats._refusals import refusal
from ojs_nats._transport import Answer, NotNow, error_of
from ojs_nats.errors import DuplicateError, QueueFullError, RefusedError
from support.tables import each


@each("code", list(CODES))
def test_each_code_of_the_server_has_a_type(code: str) -> None:
    found = refusal(
        CODES[code].status, json.dumps({"error": {"code": code, "message": "why", "retryable": False}}).encode(), None
    )
    assert type(found) is not RefusedError
    assert (found.code, str(found), found.status) == (code, "why", CODES[code].status)


def test_what_comes_with_an_error_is_told() -> None:
    error = {"code": "duplicate", "message": "m", "retryable": False, "details": {"existing_job_id": "a"}}
    found = refusal(409, json.dumps({"error": error}).encode(), None)
    assert isinstance(found, DuplicateError)
    assert found.existing_job_id == "a"
    full = refusal(429, b'{"error":{"code":"queue_full","message":"m","retryable":true}}', "3")
    assert isinstance(full, QueueFullError)
    assert full.retry_after_s == 3.0


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b'{"error":{"code":"not_found"}}', b'{"message":"no route","code":"not_found"}']
)
def test_an_answer_of_somebody_else_is_known_by_its_status_alone(body: bytes) -> None:
    found = refusal(404, body, None)
    assert type(found) is RefusedError
    assert "404, and no OJS error" in str(found)


@pytest.mark.parametrize(
    ("status", "code", "retry_after", "later"),
    [
        (409, "conflict", "5", True),  # a request with the same idempotency key still runs
        (409, "conflict", None, False),
        (409, "queue_paused", "5", False),
        (409, "duplicate", None, False),
        (503, "backend_unavailable", "2", True),
        (400, "invalid_request", None, False),
    ],
)
def test_what_may_go_well_later_is_told_from_what_is_refused(
    status: int, code: str, retry_after: str | None, later: bool
) -> None:
    body = json.dumps({"error": {"code": code, "message": "m", "retryable": later}}).encode()
    assert isinstance(error_of(Answer(status, body, retry_after)), NotNow) is later
