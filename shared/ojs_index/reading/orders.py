"""The orders of lists: ranges of indexes, merged as far as they are read.

A position is (key, creation time, id). The key is what a list is sorted by ahead of the creation time: 0, a priority,
or the time that a job is scheduled for; jobs without such a time come last, whichever way round. An index ends with
the creation time, so jobs of one are read together and sorted here. Where those are more than are read at once, all
jobs of that moment are read by their ids, and those that aren't of the range are passed over (docs/adr/006).
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from ojs_index.asking.messages import Sort
from ojs_index.reading.filters import END, HIGHEST, Condition, Filters, Subset

Position = tuple[int, int, str]


Entry = tuple[int, int, str, int, int]
"""A job in an order: its position, its number, and whether it has everything else that is asked for.

As SQLite gives it.
"""


class Reads(Struct, frozen=True, kw_only=True):
    """How many jobs are read at once: only tests have others than these."""

    first: int = 8
    """The first time, beside those that are probably wanted; then twice as many each time."""
    largest: int = 2_000
    """Never more. Where more than these have one moment, all of that moment are read by their ids."""


class Order(NamedTuple):
    """Which part of an order is read: from behind `after` on, in a direction, created from `since` to `until` (Unix ms)."""

    sort: Sort
    ascending: bool
    after: Position
    since: int
    until: int
    wanted: int
    """How many are probably read."""
    reads: Reads

    @property
    def unscheduled(self) -> int:
        """The key of jobs without a time, in an order by time."""
        return END if self.ascending else -END


class _Part(NamedTuple):
    """Jobs whose keys are all ahead of, or all behind, those of other parts: a column, or a number that is the same for all."""

    key: str | int
    subset: Subset
    condition: str = "true"


def ordered(db: sqlite3.Connection, filters: Filters, base: Subset, order: Order) -> Iterator[Entry]:
    """The jobs of `base`, one of the filters' sets, and among them some that are not; read as they are asked for."""
    for part in _parts(filters, base, order):
        number = order.reads.first + order.wanted // max(1, len(part.subset.ranges))
        ranges = [_entries(db, filters, part, values, order, number) for values in part.subset.ranges]
        yield from heapq.merge(*ranges, reverse=not order.ascending)


def _parts(filters: Filters, base: Subset, order: Order) -> Sequence[_Part]:
    """Few jobs have a priority or a time; those have indexes of their own."""
    if order.sort == "created_at":
        return [_Part(0, base)]
    if order.sort == "scheduled_at":
        times = filters.by_state("times", "state = ? AND scheduled_at IS NOT NULL")
        return [_Part("scheduled_at", times), _Part(order.unscheduled, base, "scheduled_at IS NULL")]
    low, high = (
        _Part("priority", filters.by_state("priorities", f"state = ? AND priority <> 0 AND priority {sign} 0")) for sign in "<>"
    )
    plain = _Part(0, base, "priority = 0")
    return [low, plain, high] if order.ascending else [high, plain, low]


def _entries(
    db: sqlite3.Connection, filters: Filters, part: _Part, values: tuple[Any, ...], order: Order, number: int
) -> Iterator[Entry]:
    """One range; `number` are read first, then more and more."""
    subset, at, largest = part.subset, part.subset.at, order.reads.largest
    others = filters.but(subset)
    fits = part.condition if others is None else f"{part.condition} AND {others.sql}"
    checked = () if others is None else others.values
    start: tuple[int, ...]
    stop: tuple[int, ...]
    if isinstance(part.key, int):
        first = _first(part.key, order)
        if first is None:
            return
        start, columns = (first,), str(at)
        stop, within = (filters.until if order.ascending else filters.since,), f"AND {at} {'<=' if order.ascending else '>='} ?"
    else:
        start, columns = order.after[:2], f"{part.key}, {at}"
        stop, within = (), ""
        fits, checked = f"{fits} AND {at} BETWEEN ? AND ?", (*checked, filters.since, filters.until)
    beyond, way = (">=", "ASC") if order.ascending else ("<=", "DESC")
    marks, sorting = ", ".join("?" * len(start)), ", ".join(f"{column} {way}" for column in columns.split(", "))
    statement = (
        f"SELECT {part.key}, {at}, jobs.id, jobs.n, {fits} FROM {subset.source} WHERE {subset.where} "
        f"AND ({columns}) {beyond} ({marks}) {within} ORDER BY {sorting} LIMIT ?"
    )
    while True:
        found: list[Entry] = db.execute(statement, (*checked, *values, *start, *stop, number)).fetchall()
        ended = len(found) < number
        if not ended:
            last = found[-1][:2]
            start = last[-len(start) :]
            # The last moment may not be whole.
            found = [entry for entry in found if entry[:2] != last]
            if not found:
                together = f"SELECT 1 FROM {subset.table} WHERE {subset.where} AND ({columns}) = ({marks}) LIMIT ?"
                counted = db.execute(f"SELECT count(*) FROM ({together})", (*values, *start, largest + 1))
                number = counted.fetchone()[0] + 1
                if number > largest + 1:
                    yield from _crowd(db, part, values, order, last, Condition(fits, checked))
                    start = (*start[:-1], last[1] + (1 if order.ascending else -1))
                    number = largest
                continue
        found.sort(reverse=not order.ascending)
        yield from _behind(found, order)
        if ended:
            return
        number = min(number * 2, largest)


def _crowd(
    db: sqlite3.Connection, part: _Part, values: tuple[Any, ...], order: Order, moment: tuple[int, int], others: Condition
) -> Iterator[Entry]:
    """Jobs of a range that have one key and moment, among all of that moment, by their ids."""
    keyed, key = ("true", ()) if isinstance(part.key, int) else (f"{part.key} = ?", moment[:1])
    beyond, way, end = (">", "ASC", "") if order.ascending else ("<", "DESC", HIGHEST)
    fits = f"({part.subset.condition} AND {keyed} AND {others.sql}) IS TRUE"
    statement = (
        f"SELECT ?, created_at, id, n, {fits} FROM jobs INDEXED BY moments "
        f"WHERE created_at = ? AND id {beyond} ? ORDER BY id {way} LIMIT ?"
    )
    place = order.after[2] if order.after[:2] == moment else end
    number = order.reads.first + order.wanted
    while True:
        asked = (moment[0], *values, *key, *others.values, moment[1], place, number)
        found: list[Entry] = db.execute(statement, asked).fetchall()
        yield from found
        if len(found) < number:
            return
        place = found[-1][2]
        number = min(number * 2, order.reads.largest)


def _behind(entries: list[Entry], order: Order) -> list[Entry]:
    """Those of sorted entries that come after where the order begins."""
    place = 0
    while place < len(entries) and (
        entries[place][:3] <= order.after if order.ascending else entries[place][:3] >= order.after
    ):
        place += 1
    return entries[place:] if place else entries


def _first(key: int, order: Order) -> int | None:
    """The creation time at which the reading of a part with this key starts; None if all of it is behind."""
    after, ascending = order.after, order.ascending
    if key == after[0]:
        return max(after[1], order.since) if ascending else min(after[1], order.until)
    if (key > after[0]) is ascending:
        return order.since if ascending else order.until
    return None
