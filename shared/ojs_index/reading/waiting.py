"""Reading which jobs have waited longest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

_BELOW_ALL: Final = -(1 << 62)
"""Less than any priority."""


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
