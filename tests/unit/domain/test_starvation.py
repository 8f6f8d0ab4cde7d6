from __future__ import annotations

from ojs_engine.domain.starvation import StarvationClock


def test_a_wait_begins_when_it_is_first_seen_and_ends_with_a_turn() -> None:
    turns: StarvationClock[int] = StarvationClock()
    assert turns.overdue([1, 2], 100, 0) == []
    assert turns.overdue([1, 2], 100, 99) == []
    assert turns.overdue([1, 2, 3], 100, 100) == [1, 2]
    turns.had([1], 100)
    assert turns.overdue([1, 2, 3], 100, 199) == [2]
    assert turns.overdue([3, 2, 1], 100, 200) == [2, 3, 1], "the longest wait first, equals in their order"


def test_who_no_longer_waits_begins_anew() -> None:
    turns: StarvationClock[int] = StarvationClock()
    turns.overdue([1, 2], 100, 0)
    turns.keep([1])
    assert turns.overdue([1, 2], 100, 150) == [1]
