"""Lists of jobs, by keyset: any combination of filters, either way round."""

from __future__ import annotations

import heapq
import itertools
import re
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from ojs_nats.job import State
from ojs_nats.queries import MAX_ANSWER_BYTES, MAX_COUNTED, MAX_OFFSET, MAX_PAGE, JobPage, JobRow, JobsAsk, Sort, cursor_after
from ojs_projector.model import Model
from ojs_projector.schema import COLUMNS, Row
from ojs_projector.tags import tags_of

__all__ = ["jobs", "limit_of", "page_of", "position_of"]

_ROW_BYTES: Final = 512
"""An answer's row without its tags, at most about this."""
_END: Final = 1 << 62
_CURSOR: Final = re.compile(r"(-?[0-9]{1,18})\.(.*)", re.ASCII | re.DOTALL)
_KEYS: Final[dict[Sort, str]] = {
    "created_at": "created_at",
    "scheduled_at": "coalesce(scheduled_at, 0)",
    "priority": "priority",
}

_Position = tuple[int, str]
"""Where a list has come to: the number that orders it, and a job's id."""
_Kind = tuple[str, str, str, int]
"""Queue, type, state and the number of their jobs."""


def jobs(model: Model, ask: JobsAsk) -> JobPage:
    """A page of jobs.

    Without a filter of its own index, each combination of queue, type and state is one range of the index `kinds`. With one,
    the range of that filter is read, and what the other filters leave out is passed over.
    """
    limit = limit_of(ask.limit)
    offset = min(ask.offset, MAX_OFFSET)
    kinds = _kinds(model.db, ask)
    indexed = (ask.tag, ask.error_type, ask.worker) != (None, None, None)
    if indexed or ask.sort != "created_at":
        rows = _searched(model.db, ask, limit + 1, offset)
    else:
        found = heapq.merge(*(_range(model.db, kind, ask) for kind in kinds), key=_place, reverse=not ask.ascending)
        rows = list(itertools.islice(found, offset, offset + limit + 1))
    if indexed:
        total = _counted(model.db, ask)
    elif (ask.since, ask.until) != (None, None):
        total = _counted_within(model.db, kinds, ask)
    else:
        total = sum(kind[3] for kind in kinds)
    return page_of(model, rows, limit, total, ask.sort)


# By kind


def _kinds(db: sqlite3.Connection, ask: JobsAsk) -> list[_Kind]:
    conditions, values = _of_kind(ask)
    return db.execute(f"SELECT queue, type, state, n FROM counts WHERE n > 0{conditions}", values).fetchall()


def _range(db: sqlite3.Connection, kind: _Kind, ask: JobsAsk) -> Iterator[Row]:
    """The rows of one range as they are asked for: of many ranges most give only their first.

    Each statement is read to its end, so that all ranges share one that is prepared.
    """
    since, until = _span(ask)
    at = position_of(ask.cursor, ascending=ask.ascending)
    if ask.ascending:
        at, beyond, within, stop, order = max(at, (since, "")), ">", "<=", until, "ASC"
    else:
        at, beyond, within, stop, order = min(at, (until + 1, "")), "<", ">=", since, "DESC"
    statement = (
        f"SELECT {COLUMNS} FROM jobs WHERE queue = ? AND type = ? AND state = ? AND (created_at, id) {beyond} (?, ?) "
        f"AND created_at {within} ? ORDER BY created_at {order}, id {order} LIMIT ?"
    )
    number = 1
    while True:
        rows = [Row(*row) for row in db.execute(statement, (*kind[:3], *at, stop, number))]
        yield from rows
        if len(rows) < number:
            return
        at = _place(rows[-1])
        number = min(number * 4, MAX_PAGE)


def _place(row: Row) -> _Position:
    return (row.created_at, row.id)


def _counted_within(db: sqlite3.Connection, kinds: list[_Kind], ask: JobsAsk) -> int:
    """How many jobs of these kinds were created within the span asked for, up to `MAX_COUNTED`."""
    total = 0
    for kind in kinds:
        total += db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE queue = ? AND type = ? AND state = ? "
            "AND created_at BETWEEN ? AND ? LIMIT ?)",
            (*kind[:3], *_span(ask), MAX_COUNTED - total),
        ).fetchone()[0]
        if total >= MAX_COUNTED:
            break
    return total


# By search


def _searched(db: sqlite3.Connection, ask: JobsAsk, number: int, offset: int) -> list[Row]:
    source, values = _source(ask)
    # In the columns of the index that leads, or the rows would be sorted.
    by_tag = ask.sort == "created_at" and source.startswith("tags")
    key, name = ("at", "job_id") if by_tag else (_KEYS[ask.sort], "id")
    beyond, order = (">", "ASC") if ask.ascending else ("<", "DESC")
    found = db.execute(
        f"SELECT {COLUMNS} FROM {source} AND ({key}, {name}) {beyond} (?, ?) "
        f"ORDER BY {key} {order}, {name} {order} LIMIT ? OFFSET ?",
        (*values, *position_of(ask.cursor, ascending=ask.ascending), number, offset),
    )
    return [Row(*row) for row in found]


def _counted(db: sqlite3.Connection, ask: JobsAsk) -> int:
    source, values = _source(ask)
    number: int = db.execute(f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT ?)", (*values, MAX_COUNTED)).fetchone()[0]
    return number


def _source(ask: JobsAsk) -> tuple[str, list[Any]]:
    """The tables and conditions of a search, and their values. The index of the filter that likely leaves least leads."""
    conditions, values = _of_kind(ask)
    for column, value in (("worker", ask.worker), ("error_type", ask.error_type)):
        if value is not None:
            conditions += f" AND {column} = ?"
            values.append(value)
    since, until = _span(ask)
    if ask.tag is not None and ask.worker is None and ask.error_type is None:
        # CROSS JOIN keeps the order of the tables.
        source = "tags CROSS JOIN jobs ON id = job_id WHERE tag = ? AND at BETWEEN ? AND ?"
        return source + conditions, [ask.tag, since, until, *values]
    if ask.tag is not None:
        conditions += " AND EXISTS (SELECT 1 FROM tags WHERE tag = ? AND at = created_at AND job_id = id)"
        values.append(ask.tag)
    index = ""
    if ask.worker is not None:
        index = " INDEXED BY by_worker"
    elif ask.error_type is not None:
        index = " INDEXED BY by_error"
    return f"jobs{index} WHERE created_at BETWEEN ? AND ?{conditions}", [since, until, *values]


# Common


def _of_kind(ask: JobsAsk) -> tuple[str, list[Any]]:
    """Conditions on queue, type and state, and their values."""
    conditions = ""
    values: list[Any] = []
    for column, value in (("queue", ask.queue), ("state", ask.state)):
        if value is not None:
            conditions += f" AND {column} = ?"
            values.append(value)
    if ask.type is not None and ask.type.endswith("*"):
        prefix = ask.type[:-1]
        conditions += " AND substr(type, 1, ?) = ?"
        return conditions, [*values, len(prefix), prefix]
    if ask.type is not None:
        conditions += " AND type = ?"
        values.append(ask.type)
    return conditions, values


def _span(ask: JobsAsk) -> tuple[int, int]:
    return (-_END if ask.since is None else ask.since, _END if ask.until is None else ask.until)


def limit_of(asked: int) -> int:
    return max(1, min(asked, MAX_PAGE))


def position_of(cursor: str | None, *, ascending: bool = False) -> _Position:
    """Where a cursor stands; ahead of everything without one. A cursor of another making stands there, too."""
    found = _CURSOR.fullmatch(cursor or "")
    if found is None:
        return (-_END if ascending else _END, "")
    return (int(found[1]), found[2])


def page_of(model: Model, rows: list[Row], limit: int, total: int, key: str) -> JobPage:
    """As many of `rows`, which are ordered by `key`, as the limit and the answer's size allow."""
    taken: list[JobRow] = []
    size = 0
    for row in rows[:limit]:
        size += _ROW_BYTES + len(row.tags or b"")
        if taken and size > MAX_ANSWER_BYTES:
            break
        taken.append(_job_row(row))
    more = len(taken) < len(rows)
    last = rows[len(taken) - 1] if more else None
    cursor = cursor_after(getattr(last, key) or 0, last.id) if last is not None else None
    return JobPage(jobs=taken, total=total, next_cursor=cursor, partial=model.partial, progress=model.progress)


def _job_row(row: Row) -> JobRow:
    return JobRow(
        id=row.id,
        type=row.type,
        queue=row.queue,
        state=State(row.state),
        priority=row.priority,
        attempt=row.attempt,
        created_at=row.created_at,
        enqueued_at=row.enqueued_at,
        scheduled_at=row.scheduled_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error_type=row.error_type,
        worker=row.worker,
        tags=tags_of(row),
        dead_letter=bool(row.dead_letter),
    )
