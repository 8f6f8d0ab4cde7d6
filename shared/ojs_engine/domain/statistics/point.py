"""Statistics as they are answered: one point of a series, or a window."""

from __future__ import annotations

from msgspec import Struct

from ojs_engine.domain.statistics.activity import COUNTED, Activity
from ojs_engine.domain.statistics.histogram import Percentiles, percentiles


class Point(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened in a queue, or in all of them, from `at` (Unix ms) on. The counts are those of `Activity`."""

    at: int
    pushed: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    discarded: int = 0
    cancelled: int = 0
    expired: int = 0
    avg_wait_ms: float | None = None
    """From available to started, of the attempts that started; None if there are none."""
    avg_run_ms: float | None = None
    """Of the attempts that completed."""
    wait: Percentiles | None = None
    """From available to started."""
    run: Percentiles | None = None
    """From started to the end of the attempt, however it ended."""


def point_of(at: int, activity: Activity) -> Point:
    """Return what an activity from `at` on adds up to."""
    return Point(
        at=at,
        avg_wait_ms=mean(activity.wait_ms, activity.started),
        avg_run_ms=mean(activity.completed_ms, activity.completed),
        wait=percentiles(activity.waits),
        run=percentiles(activity.runs),
        **{name: getattr(activity, name) for name in COUNTED},
    )


def mean(total: int, number: int) -> float | None:
    """Return the mean of a total, None of nothing."""
    return round(total / number, 1) if number else None
