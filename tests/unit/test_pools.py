from __future__ import annotations

import pytest

from ojs_nats.pools import Shares

WEIGHTS = {"a": 5, "b": 3, "c": 1}


def drawn(past: Shares, weights: dict[str, int], fetches: int, count: int, empty: tuple[str, ...] = ()) -> dict[str, int]:
    """What each queue gives when all but `empty` have plenty."""
    total = dict.fromkeys(weights, 0)
    for _ in range(fetches):
        given = dict.fromkeys(weights, 0)
        left = count
        for shares in (past.plan(weights, list(weights), count), dict.fromkeys(weights, count)):
            for queue, share in shares.items():
                taken = 0 if queue in empty else min(share, left)
                given[queue] += taken
                left -= taken
        past.served(weights, given, [queue for queue in weights if queue in empty])
        total = {queue: total[queue] + given[queue] for queue in weights}
    return total


@pytest.mark.parametrize(("fetches", "count"), [(90, 1), (9, 10), (1, 90), (30, 3)])
def test_queues_share_by_their_weights(fetches: int, count: int) -> None:
    given = drawn(Shares(), WEIGHTS, fetches, count)
    assert sum(given.values()) == 90
    assert {queue: round(number / 10) for queue, number in given.items()} == {"a": 5, "b": 3, "c": 1}


def test_equal_queues_take_turns() -> None:
    past, weights = Shares(), {"a": 1, "b": 1, "c": 1}
    firsts = []
    for _ in range(6):
        shares = past.plan(weights, list(weights), 1)
        first = next(iter(shares))
        firsts.append(first)
        past.served(weights, dict.fromkeys(weights, 0) | {first: 1}, [])
    assert firsts == ["a", "b", "c"] * 2


def test_what_an_empty_queue_leaves_goes_to_the_others_and_is_not_owed_later() -> None:
    past = Shares()
    without = drawn(past, WEIGHTS, 20, 4, empty=("a",))
    assert without["a"] == 0
    assert without["b"] == pytest.approx(60, abs=2)
    later = drawn(past, WEIGHTS, 9, 10)
    assert later["a"] == pytest.approx(50, abs=6)


def test_every_queue_gets_its_turn_within_one_round() -> None:
    past, weights = Shares(), {"big": 100, "small": 1}
    assert drawn(past, weights, 101, 1)["small"] >= 1
