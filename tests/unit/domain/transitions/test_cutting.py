"""What is too large of a failure's report is cut in its middle, says so, and never leaves as a whole."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from ojs_engine.domain.transitions.cutting import shortened, shortened_members
from support.examples import examples
from support.tables import each


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def read(found: Raw) -> Any:
    return json.loads(bytes(found))


FRAMES = [f'  File "app/jobs.py", line {number}, in step_{number}\n    step()\n' for number in range(400)]


@each("joined", [False, True])
def test_a_backtrace_keeps_its_beginning_and_its_end(joined: bool) -> None:
    lines = ["Traceback (most recent call last):", *FRAMES, "ValueError: boom"]
    found = read(shortened(raw("\n".join(lines) if joined else lines), 10_000))
    text = found if joined else "\n".join(found)
    assert isinstance(found, str if joined else list)
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("ValueError: boom")
    assert "step_399" in text
    assert "step_200" not in text
    assert "… cut here: " in text
    assert "the limit is 10,000 bytes" in text
    assert 9_000 < len(raw(found)) <= 10_000


def test_what_fits_stays_as_it_was_sent() -> None:
    sent = Raw(b'[ "a",  "b" ]')
    assert bytes(shortened(sent, 100)) == bytes(sent)
    assert bytes(shortened_members(Raw(b'{ "a" : 1 }'), 100)) == b'{ "a" : 1 }'


def test_one_long_line_keeps_its_end() -> None:
    found = read(shortened(raw(f"begin{'é' * 20_000}end"), 10_000))
    assert found.endswith("éend")
    assert len(raw(found)) <= 10_000


def test_details_lose_what_is_large_and_keep_the_rest() -> None:
    sent = {"error_class": "app.Boom", "backtrace": FRAMES, "request": {"body": "x" * 20_000}, "status": 502}
    found = read(shortened_members(raw(sent), 16_384))
    assert (found["error_class"], found["status"]) == ("app.Boom", 502)
    assert found["backtrace"][0] == FRAMES[0]
    assert found["backtrace"][-1] == FRAMES[-1]
    assert found["request"].startswith("dropped: 20,0")
    assert found["truncated"] == {"actual_bytes": len(raw(sent)), "max_bytes": 16_384}
    assert len(raw(found)) <= 16_384


def test_details_that_are_no_object_are_named_by_their_size() -> None:
    assert read(shortened_members(raw(["x" * 200]), 100)) == {"dropped": True, "actual_bytes": 204, "max_bytes": 100}


_TEXTS = st.text(max_size=300)
_VALUES = st.recursive(
    st.none() | st.integers(0, 9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(_TEXTS, inner, max_size=8),
)


@given(trace=_TEXTS | st.lists(_TEXTS, max_size=40) | _VALUES, details=st.dictionaries(_TEXTS, _VALUES, max_size=20))
@settings(max_examples=examples(40))
def test_whatever_was_sent_fits_afterwards(trace: Any, details: dict[str, Any]) -> None:
    assert len(shortened(raw(trace), 600)) <= 600
    assert len(shortened_members(raw(details), 900)) <= 900
