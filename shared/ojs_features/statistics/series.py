"""The question that projectors answer: what happened in a queue, or in all, minute by minute or hour by hour."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from ojs_features.statistics.activity import Activity
from ojs_features.statistics.points import point_of
from ojs_features.statistics.records import HOUR_MS
from ojs_features.statistics.time_buckets import buckets_of
from ojs_index.asking.messages import Answer, Ask
from ojs_index.asking.numbers import Point
from ojs_index.followed import Index

MAX_POINTS: Final = 1_500
"""Of one series: a day in minutes, or two months in hours."""
QUESTION: Final = "history"


class HistoryAsk(Ask, frozen=True, kw_only=True, omit_defaults=True):
    """Statistics over time, of one queue or of all: a point for every `step_ms` from `since` to `until` (Unix ms).

    Steps are whole minutes below an hour, else whole hours.
    """

    queue: str | None = None
    step_ms: int
    since: int
    until: int


class History(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """Points in order of time."""

    points: list[Point]


def history(index: Index, ask: HistoryAsk) -> History:
    """Return one point for each `step` from `since` to `until`, those without activity included."""
    step = ask.step_ms
    first = ask.since - ask.since % step
    since = max(first, ask.until - ask.until % step - (MAX_POINTS - 1) * step)
    found: defaultdict[int, Activity] = defaultdict(Activity)
    buckets = buckets_of(index)
    source = buckets.minutes if step < HOUR_MS else buckets.hours
    for start, activity in source(ask.queue, since, ask.until):
        found[start - start % step].add(activity)
    nothing = Activity()
    points = [point_of(at, found.get(at, nothing)) for at in range(since, ask.until, step)]
    return History(points=points, partial=index.partial, progress=index.progress)
