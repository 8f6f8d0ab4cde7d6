"""A table is one test that tries every case, and says which of them fail."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from support.tables import each


def collecting(seen: list[object]) -> Callable[..., None]:
    def test(number: int, wanted: int) -> None:
        seen.append(number)
        assert number == wanted

    return test


def test_every_case_is_tried() -> None:
    seen: list[object] = []
    each("number, wanted", [(1, 1), (2, 2)])(collecting(seen))()
    assert seen == [1, 2]


def test_the_one_case_that_fails_is_named() -> None:
    with pytest.raises(AssertionError) as caught:
        each("number, wanted", [(1, 1), (2, 3), (4, 4)])(collecting([]))()
    assert caught.value.__notes__ == ["in the case number=2, wanted=3"]


def test_all_cases_that_fail_are_told_by_their_ids() -> None:
    seen: list[object] = []
    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases fail") as caught:
        each("number, wanted", [(1, 2), (2, 2), (3, 4)], ids=["first", "second", "third"])(collecting(seen))()
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the case first"], ["in the case third"]]
    assert seen == [1, 2, 3]


def test_what_did_not_raise_is_a_failed_case() -> None:
    def test(number: int) -> None:
        with pytest.raises(ValueError, match="never"):
            str(number)

    with pytest.raises(pytest.fail.Exception) as caught:
        each("number", [pytest.param(1, id="one")])(test)()
    assert caught.value.__notes__ == ["in the case one"]


def test_fixtures_and_another_table_are_left_to_who_calls() -> None:
    seen: list[tuple[int, int, str]] = []

    def test(first: int, second: int, fixture: str) -> None:
        seen.append((first, second, fixture))

    tables = each("first", [1, 2])(each("second", [3, 4])(test))
    assert list(inspect.signature(tables).parameters) == ["fixture"]
    tables(fixture="f")
    assert seen == [(1, 3, "f"), (1, 4, "f"), (2, 3, "f"), (2, 4, "f")]
