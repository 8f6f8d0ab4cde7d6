"""JSON that comes from a server or goes to one: whatever is wrong with it has one way to be told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_nats._errors import InvalidRequest, is_refusal, refusal
from ojs_nats._json import decoded, encoded

DEEP = 100_000


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("text", [DEEP * "[", DEEP * b'{"a":', b'"\xff"', '"\udcff"', "\udcff", b"{", b"1e400"])
def test_what_can_t_be_read_is_said_to_be_no_json(text: bytes | str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decoded(text)


def test_an_answer_that_can_t_be_read_is_no_refusal_of_an_ojs_server() -> None:
    answer = b'{"error": {"code": "conflict", "details": {"a": ' + DEEP * b"[" + DEEP * b"]" + b"}}}"
    assert not is_refusal(answer)
    assert (refusal(502, answer, None).code, refusal(502, b'"\xff"', None).status) == ("unknown", 502)


@pytest.mark.parametrize("value", [nested(DEEP), "\ud800", {"a": "\udcff"}])
def test_what_can_t_be_written_is_an_invalid_request(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="can't be sent"):
        encoded(value)


def test_what_is_no_json_at_all_is_a_type_error_as_python_says_it() -> None:
    with pytest.raises(TypeError):
        encoded(object())
