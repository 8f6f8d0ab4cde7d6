"""Lists of jobs by any combination of filters, in any order, either way round (docs/adr/019).

Queue, type, state and time alone are ranges of indexes: a page costs what it shows. With other filters, either the smallest
of the sets that they name is looked through as a whole, or, if all of them are large, an order is followed and what the
filters leave out is passed over, up to `MAX_PASSED` jobs for each page.
"""

from __future__ import annotations

import heapq
import itertools
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ojs_core.read.messages import MAX_OFFSET, JobPage, JobRow, JobsAsk, job_cursor
from ojs_projector.index.model import Model
from ojs_projector.index.rows import job_rows, limit_of
from ojs_projector.index.schema import COLUMNS, Row
from ojs_projector.reading.filters import KIND, MAX_ENTRIES, MAX_GATHERED, Filters, Subset
from ojs_projector.reading.ranges import (
    END,
    Group,
    Position,
    RangeBounds,
    kind_range,
    label_range,
    leading,
    level_range,
    ordered,
    planned_range,
)

MAX_PASSED: Final = 8_000
_CHUNK: Final = 100
_LARGEST_CHUNK: Final = 1_000
_MOST_KINDS: Final = 20_000
"""Beyond that many kinds an order is followed instead of looking at the first job of each."""
_FEW_KINDS: Final = 200
_CURSOR: Final = re.compile(r"(-?[0-9]{1,18})\.(.*)", re.ASCII | re.DOTALL)
_KEYED: Final = re.compile(r"(-?[0-9]{1,18}|none)~(-?[0-9]{1,18})\.(.*)", re.ASCII | re.DOTALL)


def jobs(model: Model, ask: JobsAsk) -> JobPage:
    """A page of jobs. It may hold fewer than there are, or none, and still have a cursor; `total` is exact or left out.

    It is empty until a rebuild has made the orders.
    """
    if model.ordering is not None:
        return JobPage(jobs=[], total=None, partial=True, progress=model.progress)
    filters = Filters(ask)
    if ask.text is not None and not (model.searched and filters.words):
        none: list[JobRow] = []
        return JobPage(jobs=none, total=0, searched=bool(model.searched), partial=model.partial, progress=model.progress)
    found = _Search(model.db, filters, ask).page()
    shown = job_rows(model.db, _rows(model.db, found.positions), whole=ask.whole)
    if len(shown) < len(found.positions):
        found = found._replace(last=found.positions[len(shown) - 1])
    return JobPage(
        jobs=shown,
        total=found.total,
        next_cursor=None if found.last is None else _cursor(found.last, ask),
        partial=model.partial,
        progress=model.progress,
    )


class _Found(NamedTuple):
    """The positions of a page, and the one that the next page begins behind; None if there is none."""

    positions: list[Position]
    last: Position | None
    total: int | None


class _Search:
    """One question."""

    def __init__(self, db: sqlite3.Connection, filters: Filters, ask: JobsAsk) -> None:
        self._db = db
        self._filters = filters
        self._sort = ask.sort
        self._offset = min(ask.offset, MAX_OFFSET)
        self._wanted = self._offset + limit_of(ask.limit) + 1
        self._bounds = RangeBounds(_after(ask), ask.ascending, filters.since, filters.until)

    def page(self) -> _Found:
        filters = self._filters
        if filters.by_kind and filters.all_kinds:
            return self._followed(self._levels(), checked=self._sort == "scheduled_at" and filters.by_time)
        if filters.by_kind and self._sort != "scheduled_at":
            kinds = filters.number_of_kinds(self._db, _MOST_KINDS)
            if kinds < _MOST_KINDS:
                return self._followed(self._kinds(), checked=False)
        subsets = filters.subsets(self._db)
        if subsets[0].size <= MAX_GATHERED:
            return self._gathered(subsets[0])
        groups, name = self._order(subsets)
        return self._followed(groups, checked=True, but=name)

    # Looking through a set

    def _gathered(self, subset: Subset) -> _Found:
        bounds = self._bounds
        key = {"created_at": "0", "priority": "jobs.priority", "scheduled_at": "coalesce(scheduled_at, ?)"}[self._sort]
        before = (bounds.unscheduled,) if self._sort == "scheduled_at" else ()
        where, values = self._filters.others(subset.name)
        found: list[Position] = self._db.execute(
            f"SELECT {key}, jobs.created_at, jobs.id FROM {subset.source} AND {where}", (*before, *subset.values, *values)
        ).fetchall()
        if bounds.ascending:
            left = heapq.nsmallest(self._wanted, (one for one in found if one > bounds.after))
        else:
            left = heapq.nlargest(self._wanted, (one for one in found if one < bounds.after))
        return self._cut(left, None, len(found))

    # Following an order

    def _followed(self, groups: Iterable[Group], *, checked: bool, but: str | None = None) -> _Found:
        """The first positions of `groups`; if they are to be `checked`, of those that fit all filters `but` one."""
        source = ordered(self._db, groups, self._bounds)
        if not checked:
            return self._cut(list(itertools.islice(source, self._wanted)), None, self._total())
        taken: list[Position] = []
        passed, size = 0, _CHUNK
        while chunk := list(itertools.islice(source, size)):
            taken += self._fitting(chunk, but)
            passed += len(chunk)
            if len(chunk) < size:
                break
            if len(taken) >= self._wanted or passed >= MAX_PASSED:
                return self._cut(taken[: self._wanted], chunk[-1], self._total())
            size = min(size * 2, _LARGEST_CHUNK)
        return self._cut(taken[: self._wanted], None, self._total())

    def _cut(self, taken: list[Position], last: Position | None, total: int | None) -> _Found:
        """`last` is how far an order was followed, if not to its end."""
        page = taken[self._offset : self._wanted - 1]
        if len(taken) == self._wanted:
            return _Found(page, page[-1], total)
        return _Found(page, last, total)

    def _fitting(self, chunk: list[Position], but: str | None) -> list[Position]:
        where, values = self._filters.others(but)
        ids = msgspec.json.encode([position[2] for position in chunk]).decode()
        fitting = {
            job_id
            for (job_id,) in self._db.execute(
                f"SELECT jobs.id FROM json_each(?) AS each CROSS JOIN jobs ON jobs.id = each.value WHERE {where}",
                (ids, *values),
            )
        }
        return [position for position in chunk if position[2] in fitting]

    def _total(self) -> int | None:
        """How many fit in all: by numbers that are kept, or by counting the entries of one index."""
        filters, db = self._filters, self._db
        if filters.by_kind and not filters.by_time:
            return filters.kinds(db)
        if filters.by_kind:
            total = filters.within(db, MAX_ENTRIES + 1)
        elif (label := filters.only_label) is not None:
            if filters.is_kept(label):
                return filters.labelled(db, label, 0)
            total = filters.labelled(db, label, MAX_ENTRIES + 1)
        else:
            return None
        return total if total <= MAX_ENTRIES else None

    # Orders

    def _order(self, subsets: Sequence[Subset]) -> tuple[Iterable[Group], str | None]:
        """What to follow, and the filter that it fulfils: by age the smallest set that is in order, else all jobs."""
        filters = self._filters
        few = filters.all_kinds or filters.number_of_kinds(self._db, _FEW_KINDS) < _FEW_KINDS
        for subset in subsets:
            if subset.name in filters.labels and self._sort == "created_at":
                return [Group(0, [label_range(subset.name, state) for state in filters.states])], subset.name
            if subset.name == KIND and few and not filters.all_kinds and self._sort != "scheduled_at":
                return self._few_kinds(), None
        return self._levels(), None

    def _levels(self) -> list[Group]:
        """All jobs, of the state that is asked for."""
        levels = self._filters.levels(self._db)
        if self._sort == "priority":
            return self._by_priority((level.priority, level_range(level.priority, level)) for level in levels)
        if self._sort == "created_at":
            return [Group(0, [level_range(0, level) for level in levels])]
        tail = self._bounds.unscheduled
        planned = dict.fromkeys(level.state for level in levels if level.planned)
        groups = [Group(None, [planned_range(state) for state in planned])] if planned else []
        return [*groups, Group(tail, [level_range(tail, level) for level in levels if not level.planned])]

    def _few_kinds(self) -> list[Group]:
        where, values = self._filters.kind()
        kinds = self._db.execute(f"SELECT queue, type, state, priority FROM counts WHERE {where}", values).fetchall()
        if self._sort == "priority":
            return self._by_priority((kind[3], kind_range(kind[3], kind)) for kind in kinds)
        return [Group(0, [kind_range(0, kind) for kind in kinds])]

    def _kinds(self) -> Iterator[Group]:
        """Of each priority the kinds that lead."""
        where, values = self._filters.kind()
        if self._sort == "created_at":
            yield leading(self._db, 0, where, values, self._wanted, self._bounds)
            return
        found = self._db.execute(f"SELECT DISTINCT priority FROM counts WHERE {where}", values)
        for priority in sorted((one[0] for one in found), reverse=not self._bounds.ascending):
            where_too = f"{where} AND counts.priority = ?"
            yield leading(self._db, priority, where_too, [*values, priority], self._wanted, self._bounds)

    def _by_priority(self, ranges: Iterable[tuple[int, Any]]) -> list[Group]:
        groups: dict[int, list[Any]] = {}
        for priority, one in ranges:
            groups.setdefault(priority, []).append(one)
        return [Group(key, groups[key]) for key in sorted(groups, reverse=not self._bounds.ascending)]


# Cursors


def _after(ask: JobsAsk) -> Position:
    """Where a cursor stands; ahead of everything without one, or with one of another making."""
    if ask.sort == "created_at":
        found = _CURSOR.fullmatch(ask.cursor or "")
        if found is not None:
            return (0, int(found[1]), found[2])
    elif (keyed := _KEYED.fullmatch(ask.cursor or "")) is not None:
        key = (END if ask.ascending else -END) if keyed[1] == "none" else int(keyed[1])
        return (key, int(keyed[2]), keyed[3])
    return (-END - 1, 0, "") if ask.ascending else (END + 1, 0, "")


def _cursor(last: Position, ask: JobsAsk) -> str:
    key, at, job_id = last
    return job_cursor(ask.sort, None if abs(key) == END else key, at, job_id)


def position_of(cursor: str | None) -> tuple[int, str]:
    """Where a cursor of a list without a key stands, the latest first; ahead of everything without one."""
    found = _CURSOR.fullmatch(cursor or "")
    return (END, "") if found is None else (int(found[1]), found[2])


def _rows(db: sqlite3.Connection, positions: Sequence[Position]) -> list[Row]:
    marks = ",".join("?" * len(positions))
    ids = [position[2] for position in positions]
    found = {row[0]: Row(*row) for row in db.execute(f"SELECT {COLUMNS} FROM jobs WHERE id IN ({marks})", ids)}
    return [found[job_id] for job_id in ids]
