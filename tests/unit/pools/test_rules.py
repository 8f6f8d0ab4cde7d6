from __future__ import annotations

import pytest

from ojs_features.pools.rules import DispatchHistory, Pool, Prevention, Shares

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


def test_fetches_at_the_same_time_share_by_weight_and_what_they_do_not_get_is_not_counted() -> None:
    past, pool, queues = DispatchHistory(), Pool(name="p", strategy="weighted", weights=WEIGHTS), list(WEIGHTS)
    for _ in range(2):
        plans = [past.plan(pool, queues, 1, 0)[0] for _ in range(9)]
        assert {queue: sum(plan[queue] for plan in plans) for queue in queues} == WEIGHTS
        for plan in plans:
            past.served(pool, plan, dict.fromkeys(queues, 0), [], 0)
    for _ in range(2):
        plans = [past.plan(pool, queues, 1, 0)[0] for _ in range(9)]
        assert {queue: sum(plan[queue] for plan in plans) for queue in queues} == WEIGHTS
        for plan in plans:
            past.served(pool, plan, plan, [], 0)


# Starvation prevention


def through(
    past: DispatchHistory, pool: Pool, queues: list[str], times: range, count: int = 1, empty: tuple[str, ...] = ()
) -> list[str]:
    """Which queue each job comes from, with a fetch at each of `times` (ms) and plenty in all queues but `empty`."""
    order: list[str] = []
    for now in times:
        shares, _ = past.plan(pool, queues, count, now)
        assert sum(shares.values()) == count
        given = dict.fromkeys(queues, 0)
        for passes in (shares, dict.fromkeys(shares, count)):
            for queue, share in passes.items():
                taken = 0 if queue in empty else min(share, count - sum(given.values()))
                given[queue] += taken
                order += [queue] * taken
        past.served(pool, shares, given, [queue for queue in queues if queue in empty], now)
    return order


def strict(interval_ms: int, ratio: float) -> Pool:
    return Pool(
        name="p",
        strategy="strict",
        weights={"a": 1, "b": 1, "c": 1},
        prevention=Prevention(interval_ms=interval_ms, ratio=ratio),
    )


FAR = 10**9


def test_a_strict_pool_is_strict_but_for_what_it_guarantees() -> None:
    order = through(DispatchHistory(), strict(FAR, 0.1), ["a", "b", "c"], range(1_001))
    assert {queue: order.count(queue) for queue in "abc"} == {"a": 801, "b": 100, "c": 100}


def test_the_ratio_holds_in_every_window() -> None:
    order = through(DispatchHistory(), strict(FAR, 0.1), ["a", "b", "c"], range(400))
    for start in range(300):
        window = order[start : start + 100]
        assert min(window.count("b"), window.count("c")) >= 10 - 1, start


@pytest.mark.parametrize("count", [7, 20, 100])
def test_the_ratio_holds_for_fetches_of_any_size(count: int) -> None:
    order = through(DispatchHistory(), strict(FAR, 0.1), ["a", "b", "c"], range(2_100 // count), count)
    assert min(order.count("b"), order.count("c")) >= len(order) // 10 - 1
    assert order.count("a") >= 0.7 * len(order), "the rest is the strategy's"


def test_a_queue_that_got_nothing_for_the_interval_is_next_and_not_a_moment_earlier() -> None:
    past, pool = DispatchHistory(), strict(1_000, 0.0)
    assert through(past, pool, ["a", "b"], range(0, 1_000, 100)) == ["a"] * 10
    assert through(past, pool, ["a", "b"], range(1_000, 2_000, 100)) == ["b"] + ["a"] * 9
    assert through(past, pool, ["a", "b"], range(2_000, 2_100, 100)) == ["b"]


def test_of_several_starved_queues_the_longest_wait_is_first() -> None:
    past, pool = DispatchHistory(), strict(1_000, 0.0)
    through(past, pool, ["a", "c"], range(0, 100, 100))
    through(past, pool, ["a", "b", "c"], range(500, 600, 100))
    assert past.plan(pool, ["a", "b", "c"], 1, 2_000) == ({"c": 1, "a": 0, "b": 0}, ["c"])


def test_a_queue_that_has_nothing_is_looked_at_once_in_an_interval_and_is_owed_nothing() -> None:
    past, pool = DispatchHistory(), strict(1_000, 0.1)
    looked = []
    for now in range(0, 3_000, 10):
        shares, _ = past.plan(pool, ["a", "b"], 1, now)
        first = next(iter(shares))
        looked.append(first)
        past.served(pool, shares, {"a": 1, "b": 0}, ["b"] if first == "b" else [], now)
    assert looked.count("b") <= 300 // 10, "as often as its ratio lets it hope for a job"
    assert past.plan(pool, ["a", "b"], 10, 3_000)[0]["b"] <= 2


def test_what_a_queue_got_above_its_part_is_not_held_against_it() -> None:
    past, pool = DispatchHistory(), strict(FAR, 0.1)
    through(past, pool, ["b", "a"], range(500))  # b is first there, and gets nearly everything
    assert through(past, pool, ["a", "b"], range(500, 520)).count("b") == 2


def test_weights_decide_as_long_as_they_give_each_its_part() -> None:
    pool = Pool(name="p", strategy="weighted", weights=WEIGHTS, prevention=Prevention(interval_ms=FAR, ratio=0.05))
    order = through(DispatchHistory(), pool, list(WEIGHTS), range(90))
    assert {queue: order.count(queue) for queue in WEIGHTS} == {"a": 50, "b": 30, "c": 10}
    pool = Pool(name="p", strategy="weighted", weights={"a": 98, "b": 1, "c": 1}, prevention=pool.prevention)
    order = through(DispatchHistory(), pool, ["a", "b", "c"], range(1_000))
    assert {queue: order.count(queue) for queue in "abc"} == {"a": 900, "b": 50, "c": 50}
