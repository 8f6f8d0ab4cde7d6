"""JSON that comes from a server: whatever is wrong with it has one way to be told."""

from __future__ import annotations

import msgspec
import pytest

from ojs_nats._json import decoded
from ojs_nats._refusals import is_refusal, refusal

DEEP = 100_000


@pytest.mark.parametrize("text", [DEEP * "[", DEEP * b'{"a":', b'"\xff"', '"\udcff"', "\udcff", b"{", b"1e400"])
def test_what_can_t_be_read_is_said_to_be_no_json(text: bytes | str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decoded(text)


def test_an_answer_that_can_t_be_read_is_no_refusal_of_an_ojs_server() -> None:
    answer = b'{"error": {"code": "conflict", "details": {"a": ' + DEEP * b"[" + DEEP * b"]" + b"}}}"
    assert not is_refusal(answer)
    assert (refusal(502, answer, None).code, refusal(502, b'"\xff"', None).status) == ("unknown", 502)
