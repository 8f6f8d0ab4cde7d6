from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.transitions import JobHolder
from ojs_features.checkpoints.bodies import SaveCheckpoint, parse_checkpoint

ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def parse(body: Any, job_id: str = ID) -> SaveCheckpoint:
    return parse_checkpoint(msgspec.json.encode(body), DEFAULT_LIMITS, job_id)


@pytest.mark.parametrize("state", [{"a": 1}, [], "text", 0, False, {}])
def test_any_json_can_be_saved(state: Any) -> None:
    assert msgspec.json.decode(parse({"state": state}).saved.state) == state


def test_null_is_a_state() -> None:
    assert bytes(parse({"state": None}).saved.state) == b"null"


def test_what_sdks_send_is_read() -> None:
    sent = {"state": {"fetched": True}, "step_index": 1, "metadata": {"_replay_log": "[]", "attempt": "1"}}
    saved = parse(sent).saved
    assert saved.step_index == 1
    assert msgspec.json.decode(saved.metadata) == sent["metadata"]
    assert parse({"state": 1, "worker_id": "w", "attempt": 2}).holder == JobHolder("w", 2)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({}, "invalid_request", "state is required"),
        ({"state": "x" * 1_048_576}, "envelope_too_large", "the limit is 1048576 bytes"),
        ({"state": "x" * 600_000, "metadata": {"a": "x" * 600_000}}, "envelope_too_large", "the limit is 1048576 bytes"),
    ],
)
def test_what_can_not_be_saved_is_refused(body: Any, code: str, words: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse(body)
    assert refused.value.code == code
    assert words in refused.value.message
