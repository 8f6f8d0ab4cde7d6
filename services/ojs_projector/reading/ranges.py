"""The orders of lists: ranges of indexes, each in order by itself, merged as far as they are read.

A position is (key, creation time, id). The key is what a list is sorted by ahead of the creation time: 0, a priority, or the
time that a job is scheduled for; jobs without such a time come last, whichever way round.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ojs_core.read.messages import MAX_PAGE

END: Final = 1 << 62
"""Beyond all times."""

Position = tuple[int, int, str]
_Moment = tuple[int, str]
"""A creation time and an id."""


class RangeBounds(NamedTuple):
    """Which part of an order is read: from behind `after` on, in a direction, created from `since` to `until` (Unix ms)."""

    after: Position
    ascending: bool
    since: int
    until: int

    @property
    def unscheduled(self) -> int:
        """The key of jobs without a time, in an order by time."""
        return END if self.ascending else -END


class Range(NamedTuple):
    """Part of an index with this `where`, in the order of creation; `key` is the same for all of it."""

    key: int
    table: str
    at: str
    where: str
    values: tuple[Any, ...]


class Group(NamedTuple):
    """Ranges of one key, to be merged. Without a key it is of scheduled jobs, whose key is their time."""

    key: int | None
    ranges: Sequence[Range]


_LEVEL: Final = "state = ? AND priority = ? AND planned = ?"
_KIND: Final = "queue = ? AND type = ? AND state = ? AND priority = ?"


def kind_range(key: int, kind: Sequence[Any]) -> Range:
    """`kind` is queue, type, state and priority."""
    return Range(key, "jobs INDEXED BY kinds", "created_at", _KIND, tuple(kind))


def level_range(key: int, level: Sequence[Any]) -> Range:
    """`level` is state, priority, and 1 for jobs that have or had a time, else 0."""
    return Range(key, "jobs INDEXED BY ages", "created_at", _LEVEL, tuple(level))


def label_range(label: str, state: str) -> Range:
    return Range(0, "labels", "at", "label = ? AND state = ?", (label, state))


def planned_range(state: str) -> Range:
    return Range(0, "jobs INDEXED BY times", "scheduled_at", "state = ? AND scheduled_at IS NOT NULL", (state,))


def ordered(db: sqlite3.Connection, groups: Iterable[Group], bounds: RangeBounds) -> Iterator[Position]:
    """The positions of groups one after the other, each merged, read as they are asked for."""
    for group in groups:
        if group.key is None:
            found = [_planned(db, part, bounds) for part in group.ranges]
        else:
            start = _start(group.key, bounds)
            if start is None:
                continue
            found = [_created(db, part, start, bounds) for part in group.ranges]
        yield from found[0] if len(found) == 1 else heapq.merge(*found, reverse=not bounds.ascending)


def _start(key: int, bounds: RangeBounds) -> _Moment | None:
    """Where the reading of ranges with this key starts; None if all of them are behind."""
    after = bounds.after
    beyond = key > after[0] if bounds.ascending else key < after[0]
    outside = (bounds.since, "") if bounds.ascending else (bounds.until + 1, "")
    if beyond:
        return outside
    if key != after[0]:
        return None
    return max(after[1:], outside) if bounds.ascending else min(after[1:], outside)


def _created(db: sqlite3.Connection, part: Range, start: _Moment, bounds: RangeBounds) -> Iterator[Position]:
    """Each statement is read to its end, so that all ranges share one that is prepared."""
    at = part.at
    beyond, within, order = (">", "<=", "ASC") if bounds.ascending else ("<", ">=", "DESC")
    stop = bounds.until if bounds.ascending else bounds.since
    statement = (
        f"SELECT {at}, id FROM {part.table} WHERE {part.where} AND ({at}, id) {beyond} (?, ?) AND {at} {within} ? "
        f"ORDER BY {at} {order}, id {order} LIMIT ?"
    )
    number = 4
    while True:
        found = db.execute(statement, (*part.values, *start, stop, number)).fetchall()
        for one in found:
            yield (part.key, *one)
        if len(found) < number:
            return
        start = found[-1]
        number = min(number * 4, 5 * MAX_PAGE)


def _planned(db: sqlite3.Connection, part: Range, bounds: RangeBounds) -> Iterator[Position]:
    beyond, order = (">", "ASC") if bounds.ascending else ("<", "DESC")
    statement = (
        f"SELECT scheduled_at, created_at, id FROM {part.table} WHERE {part.where} AND (scheduled_at, created_at, id) {beyond} "
        f"(?, ?, ?) ORDER BY scheduled_at {order}, created_at {order}, id {order} LIMIT ?"
    )
    after = bounds.after
    number = MAX_PAGE
    while True:
        found = db.execute(statement, (*part.values, *after, number)).fetchall()
        yield from found
        if len(found) < number:
            return
        after = found[-1]
        number = 5 * MAX_PAGE


def leading(db: sqlite3.Connection, key: int, where: str, values: Sequence[Any], number: int, bounds: RangeBounds) -> Group:
    """The kinds of `counts` that the next `number` positions come from: those whose first is among the first of all."""
    start = _start(key, bounds)
    if start is None:
        return Group(key, [])
    beyond, within, order = (">", "<=", "ASC") if bounds.ascending else ("<", ">=", "DESC")
    stop = bounds.until if bounds.ascending else bounds.since
    first = (
        "SELECT created_at FROM jobs INDEXED BY kinds WHERE jobs.queue = counts.queue AND jobs.type = counts.type "
        f"AND jobs.state = counts.state AND jobs.priority = counts.priority AND (created_at, id) {beyond} (?, ?) "
        f"AND created_at {within} ? ORDER BY created_at {order}, id {order} LIMIT 1"
    )
    found = db.execute(
        f"SELECT queue, type, state, priority, ({first}) FROM counts WHERE {where} ORDER BY 5 {order}", (*start, stop, *values)
    )
    chosen: list[Range] = []
    last = None
    for *kind, at in found:
        # Others whose first is of the same time may have the better id.
        if at is None or (len(chosen) >= number and at != last):
            if at is None and bounds.ascending:
                continue
            break
        chosen.append(kind_range(key, kind))
        last = at
    return Group(key, chosen)
