"""Trouble that lasts is logged ever more seldom."""

from __future__ import annotations

from ojs_link.lasting import Lasting


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_it_is_worth_a_line_at_once_and_then_after_twice_as_long_each_time() -> None:
    clock = Clock()
    trouble = Lasting(clock)
    lines = []
    for second in range(3_000):
        clock.now = 1_000.0 + second
        if (seconds := trouble.noted()) is not None:
            lines.append(seconds)
    assert lines == [0, 30, 90, 210, 450, 930, 1_530, 2_130, 2_730]


def test_each_of_its_first_reasons_is_worth_a_line_when_it_is_new() -> None:
    clock = Clock()
    trouble = Lasting(clock)
    told = []
    for second, reason in enumerate("aabab" + "cdefgh"):
        clock.now = 1_000.0 + second
        if trouble.noted(reason) is not None:
            told.append(reason)
    assert told == list("abcde")
    trouble.over()
    assert trouble.noted("a") == 0


def test_it_says_how_long_it_was_and_begins_anew() -> None:
    clock = Clock()
    trouble = Lasting(clock)
    assert trouble.over() is None
    for _ in range(2):
        assert trouble.noted() == 0
        clock.now += 45
        assert trouble.noted() == 45
        assert trouble.over() == 45
        assert trouble.over() is None
