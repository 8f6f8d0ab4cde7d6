from __future__ import annotations

import pytest

from ojs_engine.domain.threshold_alerts import (
    SPACING_MS,
    AlertLevel,
    Announced,
    QueueBound,
    Threshold,
    exceeded,
    level_of,
    pressed,
    released,
)

KEY = Threshold("tenant:a")
HIT = {"strategy": "rate", "limit": 5, "current": 5}


def bound(depth: int) -> QueueBound:
    return QueueBound("mail", depth, 10, 0.8)


@pytest.mark.parametrize(
    ("depth", "before", "level"),
    [
        (7, "calm", "calm"),
        (8, "calm", "warned"),
        (10, "calm", "full"),
        (12, "warned", "full"),
        (9, "full", "full"),
        (8, "warned", "warned"),
        (7, "full", "calm"),
    ],
)
def test_a_queue_is_full_until_it_is_below_its_threshold(depth: int, before: AlertLevel, level: AlertLevel) -> None:
    assert level_of(bound(depth), before) == level


def announced(*depths: int, every_ms: int = SPACING_MS) -> list[tuple[str, int]]:
    """What is announced of a queue that is found with so many jobs, one time after the other: event and depth of each."""
    found: list[tuple[str, int]] = []
    last = Announced()
    for number, depth in enumerate(depths, 1):
        news = pressed(last, bound(depth), number * every_ms)
        if news:
            last = Announced(level_of(bound(depth), last.level), number * every_ms, number)
        found += [(event_type, data["depth"]) for event_type, data in news]
    return found


def test_a_change_is_news_once_however_often_it_is_seen() -> None:
    assert announced(3, 7) == []
    assert announced(8, 9, 8, 10, 9, 10, 7, 2) == [
        ("backpressure.warning", 8),
        ("queue.full", 10),
        ("backpressure.cleared", 7),
    ]


def test_a_queue_that_fills_at_once_is_said_to_be_both() -> None:
    assert announced(10) == [("backpressure.warning", 10), ("queue.full", 10)]


def test_a_queue_at_its_threshold_is_told_of_once_a_second_at_most() -> None:
    told = announced(*[8, 7] * (5 * SPACING_MS), every_ms=1)
    assert len(told) <= 2 * 11
    assert [event for event, _ in told[-4:]] == ["backpressure.warning", "backpressure.cleared"] * 2


def test_a_limit_is_exceeded_and_released_with_what_stopped_whom() -> None:
    assert exceeded(Announced(), KEY, HIT, 1) == [("rate_limit.exceeded", {"key": "tenant:a"} | HIT)]
    stopped = Announced("exceeded", 1, 1, "rate")
    assert exceeded(stopped, KEY, HIT, 5_000) == []
    told = {"key": "tenant:a", "strategy": "rate", "job_id": "job-1"}
    assert released(stopped, KEY, "job-1") == [("rate_limit.released", told)]
    free = Announced("calm", 6_000, 2)
    assert released(free, KEY, "job-1") == []
    assert exceeded(free, KEY, HIT, 6_002) == []  # too soon
    assert exceeded(free, KEY, HIT, 6_000 + SPACING_MS) != []


def test_what_was_never_exceeded_is_not_released() -> None:
    assert released(Announced(), KEY, "job-1") == []


def test_the_limit_of_a_queue_names_the_queue() -> None:
    [(_, data)] = exceeded(Announced(), Threshold("mail.out", "mail.out"), HIT, 1)
    assert data == {"key": "queue:mail.out", "queue": "mail.out"} | HIT
