"""Points of series, and windows: the sums of an activity."""

from __future__ import annotations

from ojs_features.statistics.activity import COUNTED, Activity
from ojs_features.statistics.histogram import percentiles
from ojs_index.asking.numbers import Point


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
