"""Counts of a queue, or of all, in the last minutes, hours and days (docs/adr/018)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ojs_features.statistics.activity import Activity
from ojs_features.statistics.index import ALL, hours, minutes
from ojs_features.statistics.points import mean, point_of
from ojs_features.statistics.records import HOUR_MS, MINUTE_MS
from ojs_index.asking.counting import WINDOWS, Recent
from ojs_index.asking.numbers import BACKLOG_STEP_MS, BACKLOG_STEPS, Point


def windows(db: sqlite3.Connection, queue: str | None, now: int, names: Sequence[str]) -> dict[str, Point]:
    """Return what happened lately in a queue, or in all of them, by window.

    An hour's record can't be split, so windows of up to an hour are summed from minutes.
    """
    until = now - now % MINUTE_MS + MINUTE_MS
    lengths = {name: WINDOWS[name] for name in names}
    totals = {name: Activity() for name in names}
    for source, read in (
        (minutes, {name: length for name, length in lengths.items() if length <= HOUR_MS}),
        (hours, {name: length for name, length in lengths.items() if length > HOUR_MS}),
    ):
        if not read:
            continue
        for start, activity in source(db, queue or ALL, until - max(read.values()), until):
            for name, length in read.items():
                if start >= until - length:
                    totals[name].add(activity)
    return {name: point_of(until - lengths[name], total) for name, total in totals.items()}


def backlog(db: sqlite3.Connection, queue: str, now_there: int, now: int) -> tuple[int, ...]:
    """Return how many jobs of a queue had not ended in the last hour.

    They are counted back from how many there are by what came and went.
    """
    until = now - now % MINUTE_MS + MINUTE_MS
    since = until - BACKLOG_STEPS * BACKLOG_STEP_MS
    changes = dict(
        db.execute(
            "SELECT (start - ?) / ?, sum(pushed - completed - discarded - cancelled) FROM spans "
            "WHERE length = ? AND queue = ? AND start >= ? AND start < ? GROUP BY 1",
            (since, BACKLOG_STEP_MS, MINUTE_MS, queue, since, until),
        )
    )
    counted = [now_there]
    for step in reversed(range(BACKLOG_STEPS)):
        # Jobs that are retried after their end, or removed, are in no span.
        counted.append(max(0, counted[-1] - changes.get(step, 0)))
    return tuple(reversed(counted))


def recent(db: sqlite3.Connection, queue: str | None, now: int, names: Sequence[str]) -> Recent:
    """Return the numbers of the last hour and minutes; `names` are those of the windows beside them."""
    until = now - now % MINUTE_MS + MINUTE_MS
    completed, discarded, started, wait_ms, completed_ms = db.execute(
        "SELECT coalesce(sum(completed), 0), coalesce(sum(discarded), 0), coalesce(sum(started), 0), "
        "coalesce(sum(wait_ms), 0), coalesce(sum(completed_ms), 0) "
        "FROM spans WHERE length = ? AND queue = ? AND start >= ? AND start < ?",
        (MINUTE_MS, queue or ALL, until - WINDOWS["1h"], until),
    ).fetchone()
    found = windows(db, queue, now, names)
    latest = found["5m"]
    seconds = WINDOWS["5m"] / 1_000
    return Recent(
        completed_last_hour=completed,
        failed_last_hour=discarded,
        avg_duration_ms=mean(completed_ms, completed),
        avg_wait_ms=mean(wait_ms, started),
        throughput_per_second=round(latest.completed / seconds, 6),
        failed_per_second=round(latest.discarded / seconds, 6),
        pushed_per_second=round(latest.pushed / seconds, 6),
        windows=found,
    )


def ended(db: sqlite3.Connection, now: int) -> dict[str, tuple[int, int]]:
    """Return the completed and failed attempts of the last five minutes, by queue."""
    until = now - now % MINUTE_MS + MINUTE_MS
    found = db.execute(
        "SELECT queue, sum(completed), sum(failed) FROM spans INDEXED BY spans_in_time "
        "WHERE length = ? AND start >= ? AND start < ? AND queue <> ? GROUP BY queue",
        (MINUTE_MS, until - WINDOWS["5m"], until, ALL),
    )
    return {queue: (completed, failed) for queue, completed, failed in found}
