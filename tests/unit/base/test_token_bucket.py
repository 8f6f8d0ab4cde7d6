from __future__ import annotations

from ojs_engine.base.token_bucket import TokenBucket


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_second_s_worth_may_come_at_once_and_then_as_many_as_the_rate_allows() -> None:
    clock = Clock()
    bucket = TokenBucket(clock)
    assert [bucket.take(3) for _ in range(5)] == [0, 0, 0, 1, 1]
    clock.now += 0.4
    assert [bucket.take(3) for _ in range(2)] == [0, 1]
    clock.now += 60
    assert [bucket.take(3) for _ in range(4)] == [0, 0, 0, 1], "no more than a second is made up for"


def test_a_large_batch_is_let_in_whole_and_waited_for() -> None:
    clock = Clock()
    bucket = TokenBucket(clock)
    assert bucket.take(10, 35) == 0
    assert bucket.left(10) == (0, 3)
    assert bucket.take(10) == 3
    clock.now += 3
    assert bucket.take(10) == 0


def test_what_is_left_is_told_without_taking_it() -> None:
    clock = Clock()
    bucket = TokenBucket(clock)
    assert bucket.left(5) == bucket.left(5) == (5, 0)
    bucket.take(5, 2)
    assert bucket.left(5) == (3, 0)
    assert bucket.left(1) == (1, 0), "the rate may be another one than before"
