"""The log of requests: what is in a line, and which requests have one."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from unit.gateway.conftest import Start

JOB = {"type": "mail.send", "args": ["the-argument"]}


async def requests_of(start: Start, **settings: Any) -> list[dict[str, Any]]:
    """The lines of a push, of a refused one with secrets in it, and of a question for a job that isn't there."""
    http = await start(**settings)
    with capture_logs() as logs:
        for method, path, body in (
            ("POST", "/ojs/v1/jobs", JOB),
            ("POST", "/ojs/v1/jobs?secret=the-query", {"type": "no type", "args": ["the-argument"]}),
            ("GET", "/ojs/v1/jobs/0190-the-id", None),
        ):
            async with http.request(method, path, json=body, headers={"Authorization": "Bearer the-header"}) as answer:
                await answer.read()
    return [dict(line) for line in logs if line["event"] == "request"]


async def test_all_requests_have_a_line_that_says_how_they_ended(start: Start) -> None:
    lines = await requests_of(start, request_log="all")
    assert [(line["method"], line["route"], line["status"], line["log_level"]) for line in lines] == [
        ("POST", "/ojs/v1/jobs", 201, "info"),
        ("POST", "/ojs/v1/jobs", 400, "warning"),
        ("GET", "/ojs/v1/jobs/{job_id}", 404, "warning"),
    ]
    assert all(line["ms"] >= 0 and line["address"] == "127.0.0.1" and line["request_id"] for line in lines)
    assert [line["key"] for line in lines] == ["everybody"] * 3


async def test_only_those_that_failed_have_one(start: Start) -> None:
    assert [line["status"] for line in await requests_of(start, request_log="errors")] == [400, 404]


async def test_nobody_has_one_by_default(start: Start) -> None:
    assert await requests_of(start) == []


@pytest.mark.parametrize("kept", ["the-argument", "the-query", "the-id", "the-header"])
async def test_a_line_has_nothing_of_what_the_caller_sent(start: Start, kept: str) -> None:
    lines = await requests_of(start, request_log="all")
    assert len(lines) == 3
    assert kept not in str(lines)


async def test_a_request_that_is_not_let_in_has_no_key(start: Start) -> None:
    lines = await requests_of(start, request_log="errors", api_key="a-key-that-nobody-guesses-at-all-0123456789")
    assert {(line["status"], line["key"]) for line in lines} == {(401, None)}
