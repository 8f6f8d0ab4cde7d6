"""What JSON holds of the values that programs send, and what is refused."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

import msgspec
import pytest

from ojs_nats._plain import encoded, plain
from support.tables import each


class Size(enum.IntEnum):
    SMALL = 1


class Colour(enum.StrEnum):
    RED = "red"


class Mean(float):
    """As numpy's float64."""


class Count(int):
    """As an int of somebody's own."""


class Markup(str):
    """As markupsafe's."""

    __slots__ = ()


@dataclass
class Point:
    x: float
    names: dict[int, str]


def nested(levels: int, within: Any = None) -> Any:
    for _ in range(levels):
        within = [within]
    return within


@each(
    ("value", "read"),
    [
        (None, None),
        ({"a": [1, 2.5, True, "ä"]}, {"a": [1, 2.5, True, "ä"]}),
        ((1, {2}), [1, [2]]),
        (2**64, 2**64),
        (date(2026, 11, 23), "2026-11-23"),
        (Point(1.5, {1: "a"}), {"x": 1.5, "names": {"1": "a"}}),
        ({1: 2, Size.SMALL + 1: 3}, {"1": 2, "2": 3}),
        ({Size.SMALL: Size.SMALL}, {"1": 1}),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        ({UUID(int=1): 1}, {"00000000-0000-0000-0000-000000000001": 1}),
        ({1.5: 1}, {"1.5": 1}),
        ([Mean(0.5), Count(5), Markup("<b>")], [0.5, 5, "<b>"]),
        ({Markup("a"): Mean(1), Count(2): 3, Mean(2.5): 4}, {"a": 1.0, "2": 3, "2.5": 4}),
        (msgspec.Raw(b'{"a":1}'), {"a": 1}),
        ({"a": msgspec.Raw(b"[1]"), "b": {1: 2}}, {"a": [1], "b": {"1": 2}}),
        (nested(64), nested(64)),
        ([nested(60)] * 100, [nested(60)] * 100),
    ],
)
def test_what_json_holds_is_sent(value: Any, read: Any) -> None:
    assert plain(value, "it") == read


@each(
    ("value", "said"),
    [
        (float("nan"), r"it is nan, which JSON can't hold"),
        ([Mean("nan")], r"it\[0\] is nan, which JSON can't hold"),
        ({"a": [1, float("inf")]}, r"it\['a'\]\[1\] is inf"),
        ([Point(float("-inf"), {})], r"it\[0\]\['x'\] is -inf"),
        ({float("nan"): 1}, r"it has the key nan"),
        (["invoice-\udce9.pdf"], r"it\[0\] has half of a surrogate pair.*invoice-\\udce9.pdf"),
        ({"\udce9": 1}, r"a key of it has half of a surrogate pair"),
        ([10**4301], r"it\[0\] is an integer of more than 4,300 digits"),
        ({1: "a", "1": "b"}, r"it has two keys that JSON writes as '1'"),
        (nested(65), r"it(\[0\])* is nested too deeply: the server takes 64 levels"),
        ([nested(64)] * 100, r"it\[0\](\[0\])* is nested too deeply"),
        ({"a": nested(64)}, r"nested too deeply"),
    ],
)
def test_what_json_can_t_hold_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        encoded(value, "it")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({("a", 1): 1}, r"it has the key \('a', 1\)"),
        ({"a": {None: 1}}, r"it\['a'\] has the key None"),
        ({True: 1}, r"it has the key True"),
        ([object()], r"it\[0\] can't be written as JSON: Encoding objects of type object is unsupported"),
    ],
)
def test_other_keys_and_objects_are_refused(value: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        encoded(value, "it")


@pytest.mark.parametrize("deepest", [64, None])
def test_what_is_nested_beyond_python_s_own_bound_is_refused_whatever_the_bound(deepest: int | None) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        encoded(nested(100_000), "it", deepest=deepest)
