from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ojs_command.client.arguments import ago, duration, header, json_value, member, positive, seconds, when, words
from support.tables import each


@each(
    ("text", "value"),
    [("5", 5), ("true", True), ("null", None), ('"5"', "5"), ('{"a": [1]}', {"a": [1]}), ("ada@example.org", "ada@example.org"),
     ("2026-11", "2026-11"), ("", ""), ("nul", "nul")],
)  # fmt: skip
def test_json_and_words_that_are_not(text: str, value: Any) -> None:
    assert json_value(text) == value


def test_what_else_is_read() -> None:
    assert member("a=b=c") == ("a", "b=c")
    assert member("n=3") == ("n", 3)
    assert header("Authorization: Bearer a:b") == ("Authorization", "Bearer a:b")
    assert header("X-Off:") == ("X-Off", "")
    assert words("a,,b") == ["a", "b"]
    assert when("2026-11-24T08:00:00Z") == datetime(2026, 11, 24, 8, tzinfo=UTC)
    assert when("2026-11-24T08:00").tzinfo is not None
    assert datetime.now(UTC) - ago("2h") - timedelta(hours=2) < timedelta(minutes=1)
    assert seconds("1m") == 60.0
    assert duration("1h30m") == "1h30m"


@each(
    ("read", "text"),
    [
        (json_value, 2_000 * "["),
        (json_value, '{"a":'), (json_value, '["a"'), (json_value, '"a'), (member, "a"), (member, "=a"),
        (header, "Authorization"), (header, ": x"), (header, "A: b\r\nC: d"),
        (when, "tomorrow"), (ago, "yesterday"), (positive, "0"), (positive, "-1"),
        (positive, "1.5"), (duration, "soon"), (duration, "-1s"), (seconds, "0s"),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_refused(read: Callable[[str], Any], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        read(text)
