"""Answers with members that a client has added."""

from __future__ import annotations

import pytest
from msgspec import Raw, Struct

from ojs_engine.base.extensions import Extensions
from ojs_engine.wire.members import bare, encode, extended, members


class Inner(Struct):
    queues: list[str]


class Outer(Struct):
    id: str
    filter: Inner | None = None


class Page(Struct):
    items: list[object]


ADDED: Extensions = {"ext_a": Raw(b"[1.0,1E5]"), "filter.x_b": Raw(b"2"), "validation.retention.x_c": Raw(b"3")}


def test_they_stand_where_they_were_sent_and_are_written_as_they_were() -> None:
    view = extended(Outer("o", Inner(["q"])), ADDED)
    body = b'{"ext_a":[1.0,1E5],"id":"o","filter":{"x_b":2,"queues":["q"]},"validation":{"retention":{"x_c":3}}}'
    assert encode(view) == body
    assert encode(Page([view])) == b'{"items":[' + body + b"]}"
    assert bare(view) == Outer("o", Inner(["q"]))
    assert set(members(view)) == {"ext_a", "id", "filter", "validation"}


def test_an_answer_without_any_is_the_answer() -> None:
    answer = Outer("o")
    assert extended(answer, {}) is answer
    assert bare(answer) is answer


def test_what_no_answer_has_can_t_be_written() -> None:
    with pytest.raises(TypeError, match="answers have no object"):
        encode(Page([object()]))
