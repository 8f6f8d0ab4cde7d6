from __future__ import annotations

import pytest

from ojs_core.domain.events.threshold_alerts import events_of_alert
from ojs_core.domain.threshold_alerts import (
    SPACING_MS,
    AlertLevel,
    AlertRecord,
    QueueBound,
    exceeded,
    level_of,
    pressed,
    released,
)
from ojs_core.domain.transitions import Moment


def at(now: int) -> Moment:
    return Moment(now, f"op{now}")


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


def walk(*steps: tuple[int, int]) -> list[tuple[int, str, int]]:
    """What is told when a queue is found with `depth` jobs at `now`: number, event and depth of each."""
    record: AlertRecord | None = None
    for now, depth in steps:
        record = pressed(record, bound(depth), at(now)) or record
    return [] if record is None else [(entry.n, entry.event, entry.data["depth"]) for entry in record.log]


def test_a_crossing_is_told_once_however_often_it_is_seen() -> None:
    assert walk((1, 3), (2, 7)) == []
    steps = [(1, 8), (2, 9), (3, 8), (4, 10), (5, 9), (6, 10), (7, 7), (8, 2)]
    assert walk(*steps) == [
        (1, "backpressure.warning", 8),
        (2, "queue.full", 10),
        (3, "backpressure.cleared", 7),
    ]


def test_a_queue_that_fills_at_once_is_said_to_be_both() -> None:
    assert walk((1, 10)) == [(1, "backpressure.warning", 10), (2, "queue.full", 10)]


def test_a_queue_at_its_threshold_is_told_of_once_a_second_at_most() -> None:
    steps = [(now, 8 if now % 2 else 7) for now in range(10 * SPACING_MS)]
    told = walk(*steps)
    assert told[-1][0] <= 2 * 11
    assert [event for _, event, _ in told[-4:]] == ["backpressure.warning", "backpressure.cleared"] * 2


def test_a_limit_is_exceeded_and_released_with_what_stopped_whom() -> None:
    hit = {"strategy": "rate", "limit": 5, "current": 5}
    first = exceeded(None, "tenant:a", None, hit, at(1))
    assert first is not None
    assert exceeded(first, "tenant:a", None, hit, at(5_000)) is None
    second = released(first, "job-1", at(6_000))
    assert second is not None
    assert released(second, "job-1", at(6_001)) is None
    assert exceeded(second, "tenant:a", None, hit, at(6_002)) is None  # too soon
    assert exceeded(second, "tenant:a", None, hit, at(6_000 + SPACING_MS)) is not None
    told = [event for entry in second.log for event in events_of_alert(second, entry)]
    assert [(event.type, event.subject, event.data) for event in told] == [
        ("rate_limit.exceeded", "tenant:a", {"key": "tenant:a", "strategy": "rate", "limit": 5, "current": 5}),
        ("rate_limit.released", "tenant:a", {"key": "tenant:a", "strategy": "rate", "job_id": "job-1"}),
    ]
    assert len({event.id for event in told}) == 2
    assert [event.id for entry in second.log[:1] for event in events_of_alert(first, entry)] == [told[0].id]


def test_what_was_never_exceeded_is_not_released() -> None:
    assert released(None, "job-1", at(1)) is None


def test_the_limit_of_a_queue_names_the_queue() -> None:
    hit = {"strategy": "concurrency", "limit": 1, "current": 1}
    record = exceeded(None, "mail.out", "mail.out", hit, at(1))
    assert record is not None
    assert record.log[0].data == {"key": "queue:mail.out", "queue": "mail.out"} | hit
