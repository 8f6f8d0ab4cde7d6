from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from ojs_engine.base.errors import CODES, NUMBERS, OjsError, conflict, duplicate, invalid, not_found, placed
from ojs_engine.wire.errors import error_body
from support.tables import each

CATALOG = Path(__file__).parents[2] / "fixtures" / "error_catalog.txt"
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def read(body: bytes) -> Any:
    return msgspec.json.decode(body)


@each("code", CODES)
def test_every_error_has_the_members_that_clients_read(code: str) -> None:
    error = read(error_body(OjsError(code, "words", details={"a": 1}), "req_1"))["error"]
    renamed = {
        "invalid_retry_policy": "invalid_request",
        "queue_full": "QUEUE_FULL",
        "extension_not_supported": "EXTENSION_NOT_SUPPORTED",
    }
    expected = renamed.get(code, code)
    assert (error["code"], error["message"], error["details"], error["request_id"]) == (expected, "words", {"a": 1}, "req_1")
    assert error["retryable"] is CODES[code].retryable
    assert error["docs_url"] == f"https://openjobspec.org/errors/{CODES[code].canonical}"
    assert error["hint"]
    known = CODES[code].nearest or CODES[code].canonical
    assert (error["canonical_code"], error["ojs_code"]) == (CODES[code].canonical, NUMBERS[known])
    assert "type" not in error


def in_capitals(name: str) -> str:
    """`JobNotFound` as JOB_NOT_FOUND."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def test_the_numbers_are_those_of_the_catalog() -> None:
    rows = [line.split() for line in CATALOG.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert {in_capitals(name) if code == "-" else code: number for number, name, code in rows} == NUMBERS


@each("code", CODES)
def test_a_code_names_the_nearest_of_the_catalog_only_where_that_lacks_it(code: str) -> None:
    info = CODES[code]
    assert (info.canonical in NUMBERS) is (not info.nearest)


@each(
    ("error", "canonical", "number"),
    [
        (conflict("no", ID, "completed", "", canonical="JOB_ALREADY_COMPLETED"), "JOB_ALREADY_COMPLETED", "OJS-3002"),
        (conflict("no", ID, "available", "active"), "INVALID_STATE_TRANSITION", "OJS-1005"),
        (invalid("args", "args", canonical="INVALID_ARGS"), "INVALID_ARGS", "OJS-1003"),
        (invalid("schema", "schema", canonical="INVALID_SCHEMA"), "INVALID_SCHEMA", "OJS-1000"),
        (OjsError("conflict", "no", canonical="QUEUE_NOT_EMPTY"), "QUEUE_NOT_EMPTY", "OJS-1005"),
        (not_found("workflow", ID), "WORKFLOW_NOT_FOUND", "OJS-4000"),
        (not_found("job", ID), "NOT_FOUND", "OJS-3000"),
        (placed(invalid("args", "args", canonical="INVALID_ARGS"), "jobs[1]"), "INVALID_ARGS", "OJS-1003"),
    ],
)
def test_the_number_is_that_of_the_more_exact_code(error: OjsError, canonical: str, number: str) -> None:
    sent = read(error_body(error, "r"))["error"]
    assert (sent["canonical_code"], sent["ojs_code"]) == (canonical, number)
    assert sent["docs_url"].endswith(f"/{canonical}")


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
