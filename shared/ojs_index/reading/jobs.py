"""Lists of jobs by any combination of filters, in any order, either way round (docs/adr/006).

One of the filters' sets is followed in its order: a page by that filter alone costs what it shows. Where there are
other filters, or is another order, the smallest set is looked through as a whole if it is small; else, and where the
kept numbers say that more than a page fits, an order is followed and what doesn't fit is passed over, up to
`Bounds.passed` jobs for each page.
"""

from __future__ import annotations

import heapq
import sqlite3
from typing import NamedTuple

from msgspec import Struct

from ojs_index.asking.messages import CURSOR, KEYED_CURSOR, MAX_COUNTED, MAX_OFFSET, JobPage, JobsAsk, job_cursor
from ojs_index.reading.filters import END, Filters, Subset
from ojs_index.reading.orders import Order, Position, Reads, ordered
from ojs_index.sqlite.model import Model
from ojs_index.sqlite.rows import job_rows, limit_of


class Bounds(Struct, frozen=True, kw_only=True):
    """How many jobs a question may touch: only tests have others than these."""

    counted: int = MAX_COUNTED
    """The largest set that is looked through as a whole, and how far is counted what no number is kept of."""
    passed: int = 2_500
    """How many that don't fit are passed over for one page."""
    reads: Reads = Reads()


def jobs(model: Model, ask: JobsAsk, bounds: Bounds = Bounds()) -> JobPage:
    """A page of jobs. It may hold fewer than there are, or none, and still have a cursor; `total` is exact or left out.

    It is empty until a rebuild has made the orders. `bounds` are for tests.
    """
    if model.ordering is not None:
        return JobPage(jobs=[], total=None, partial=True, progress=model.progress)
    filters = Filters(ask)
    found = _Search(model.db, filters, ask, bounds).page()
    shown = job_rows(model.db, [place.n for place in found.places], whole=ask.whole)
    last = found.last if len(shown) == len(found.places) else found.places[len(shown) - 1].position
    return JobPage(
        jobs=shown,
        total=found.total,
        next_cursor=None if last is None else _cursor(last, ask),
        partial=model.partial,
        progress=model.progress,
    )


class _Place(NamedTuple):
    """A job on a page."""

    position: Position
    n: int


class _Found(NamedTuple):
    """A page, and the position that the next page begins behind; None if there is none."""

    places: list[_Place]
    last: Position | None
    total: int | None
    short: bool
    """Enough was passed over before the page was full."""


class _Search:
    """One question."""

    def __init__(self, db: sqlite3.Connection, filters: Filters, ask: JobsAsk, bounds: Bounds) -> None:
        self._db = db
        self._filters = filters
        self._bounds = bounds
        self._offset = min(ask.offset, MAX_OFFSET)
        self._wanted = self._offset + limit_of(ask.limit) + 1
        self._order = Order(ask.sort, ask.ascending, _after(ask), filters.since, filters.until, self._wanted, bounds.reads)

    def page(self) -> _Found:
        db, filters, most = self._db, self._filters, self._bounds.counted
        filters.leave_out_empty_states(db)
        total = filters.counted(db)
        base = next(filters.ordered())
        if self._order.sort == "created_at" and filters.but(base) is None:
            if total is None:
                size = filters.size(db, base, most + 1)
                total = size if size <= most else None
            return self._followed(base, total)
        sizes = [(filters.size(db, one, most + 1), one) for one in (*filters.ordered(), *filters.unordered())]
        size, smallest = min(sizes, key=lambda found: found[0])
        if size > most:
            return self._followed(base, total)
        if self._order.sort == "created_at" and smallest.at is not None and total is not None and total > self._wanted:
            # Its order has a page long before its end, unless what fits lies together, far behind.
            found = self._followed(smallest, total)
            if not found.short:
                return found
        return self._gathered(smallest)

    def _gathered(self, subset: Subset) -> _Found:
        """Look through a set as a whole."""
        filters, order = self._filters, self._order
        key = {"created_at": "0", "priority": "priority", "scheduled_at": f"coalesce(scheduled_at, {order.unscheduled})"}
        where, checked = f"{subset.where} AND {subset.at or 'created_at'} BETWEEN ? AND ?", (filters.since, filters.until)
        if (others := filters.but(subset)) is not None:
            where, checked = f"{where} AND {others.sql}", (*checked, *others.values)
        statement = f"SELECT {key[order.sort]}, created_at, id, jobs.n FROM {subset.source} WHERE {where}"
        found: list[_Place] = []
        for values in subset.ranges:
            found += [_Place(row[:3], row[3]) for row in self._db.execute(statement, (*values, *checked))]
        if order.ascending:
            left = heapq.nsmallest(self._wanted, (one for one in found if one.position > order.after))
        else:
            left = heapq.nlargest(self._wanted, (one for one in found if one.position < order.after))
        return self._cut(left, None, len(found))

    def _followed(self, base: Subset, total: int | None) -> _Found:
        """Follow an order until the page is full, or enough is passed over."""
        taken: list[_Place] = []
        last = None
        passed, most = 0, self._bounds.passed
        for entry in ordered(self._db, self._filters, base, self._order):
            key, at, job_id, n, fits = entry
            if fits:
                taken.append(_Place((key, at, job_id), n))
                if len(taken) == self._wanted:
                    break
                continue
            passed += 1
            if passed == most:
                last = (key, at, job_id)
                break
        return self._cut(taken, last, total)

    def _cut(self, taken: list[_Place], last: Position | None, total: int | None) -> _Found:
        """`last` is how far an order was followed, if neither to its end nor to the end of the page."""
        page = taken[self._offset : self._wanted - 1]
        full = len(taken) == self._wanted
        return _Found(page, page[-1].position if full else last, total, short=not full and last is not None)


# Cursors


def _after(ask: JobsAsk) -> Position:
    """Where a cursor stands; ahead of everything without one, or with one of another making."""
    if ask.sort == "created_at":
        found = CURSOR.fullmatch(ask.cursor or "")
        if found is not None:
            return (0, int(found[1]), found[2])
    elif (keyed := KEYED_CURSOR.fullmatch(ask.cursor or "")) is not None:
        key = (END if ask.ascending else -END) if keyed[1] == "none" else int(keyed[1])
        return (key, int(keyed[2]), keyed[3])
    return (-END - 1, 0, "") if ask.ascending else (END + 1, 0, "")


def _cursor(last: Position, ask: JobsAsk) -> str:
    key, at, job_id = last
    return job_cursor(ask.sort, None if abs(key) == END else key, at, job_id)


def position_of(cursor: str | None) -> tuple[int, str]:
    """Where a cursor of a list without a key stands, the latest first; ahead of everything without one."""
    found = CURSOR.fullmatch(cursor or "")
    return (END, "") if found is None else (int(found[1]), found[2])
