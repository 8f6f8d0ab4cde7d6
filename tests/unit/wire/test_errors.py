from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_core.base.errors import CODES, OjsError, conflict, duplicate, invalid, not_found
from ojs_core.wire.errors import error_body

ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def read(body: bytes) -> Any:
    return msgspec.json.decode(body)


@pytest.mark.parametrize("code", CODES)
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
