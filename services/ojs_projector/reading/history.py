"""Reading what happened lately: the last minutes, hours and days, and which jobs have waited longest (docs/adr/018)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from ojs_engine.domain.statistics.activity import Activity
from ojs_engine.domain.statistics.point import Point, point_of
from ojs_engine.domain.statistics.record import HOUR_MS, MINUTE_MS
from ojs_engine.read.numbers import BACKLOG_STEP_MS, BACKLOG_STEPS
from ojs_projector.index.time_buckets import ALL, hours, minutes

WINDOWS: Final = {"5m": 5 * MINUTE_MS, "1h": HOUR_MS, "1d": 24 * HOUR_MS}
"""The windows that `windows` tells of, with the present minute as their last."""
_BELOW_ALL: Final = -(1 << 62)
"""Less than any priority."""


def windows(db: sqlite3.Connection, queue: str | None, now: int, names: Sequence[str] = tuple(WINDOWS)) -> dict[str, Point]:
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
    """How many jobs of a queue had not ended in the last hour: counted back from how many there are by what came and went."""
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


class FirstWaiting(NamedTuple):
    """The job that has waited longest of its queue and priority; `since` in Unix ms."""

    queue: str
    priority: int
    since: int
    id: str


_WAITING: Final = "FROM jobs INDEXED BY waiting WHERE state = 'available' AND enqueued_at IS NOT NULL"
_OLDEST: Final = f"""
WITH RECURSIVE busy(queue) AS (
    SELECT min(queue) {_WAITING}
    UNION ALL SELECT (SELECT min(queue) {_WAITING} AND queue > busy.queue) FROM busy WHERE queue IS NOT NULL
)
SELECT json_group_object(queue, (
    WITH RECURSIVE used(priority) AS (
        SELECT (SELECT min(priority) {_WAITING} AND queue = busy.queue)
        UNION ALL SELECT (SELECT min(priority) {_WAITING} AND queue = busy.queue AND priority > used.priority)
        FROM used WHERE priority IS NOT NULL
    )
    SELECT min((SELECT min(enqueued_at) {_WAITING} AND queue = busy.queue AND priority = used.priority))
    FROM used WHERE priority IS NOT NULL
)) FROM busy WHERE queue IS NOT NULL"""
"""Goes from queue to queue, and in each from priority to priority, by the index alone."""


def first_waiting(db: sqlite3.Connection, queue: str | None = None) -> Iterator[FirstWaiting]:
    """Every queue and priority that has available jobs, by one look at the index for each."""
    condition, values = ("", ()) if queue is None else (" AND queue = ?", (queue,))
    statement = (
        f"SELECT queue, priority, enqueued_at, id FROM jobs INDEXED BY waiting WHERE state = 'available'{condition} "
        "AND (queue, priority) > (?, ?) AND enqueued_at IS NOT NULL ORDER BY queue, priority, enqueued_at LIMIT 1"
    )
    at = (queue or "", _BELOW_ALL)
    while (found := db.execute(statement, (*values, *at)).fetchone()) is not None:
        yield FirstWaiting(*found)
        at = found[:2]


def oldest_available(db: sqlite3.Connection) -> dict[str, int]:
    """Since when the job waits that has waited longest, by queue: one statement, so that no other thread comes in between."""
    [found] = db.execute(_OLDEST).fetchone()
    return msgspec.json.decode(found, type=dict[str, int])
