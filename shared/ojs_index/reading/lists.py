"""Reading the model: dead letters, queues, statistics, and what the safety net looks for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ojs_index.asking.counting import WINDOWS
from ojs_index.asking.messages import MAX_OFFSET, DeadLettersAsk, DeadLetterStats, JobPage, QueuesAsk, cursor_after
from ojs_index.asking.numbers import Counts, Levels, Queue, QueuePage, Totals
from ojs_index.reading.jobs import position_of
from ojs_index.reading.waiting import first_waiting
from ojs_index.sqlite.model import Model
from ojs_index.sqlite.numbers import DEAD, counts_of, counts_of_queues, dead_of_queues, dead_of_types
from ojs_index.sqlite.rows import job_rows, limit_of

_BUSY: Final = ("available", "active", "retryable")
_LISTED: Final = ("5m",)
"""The windows of each queue in a list."""


# Dead letters


def dead_letters(model: Model, ask: DeadLettersAsk) -> JobPage:
    """A page of dead letters, the latest first. It is empty until all is read by a rebuild."""
    if model.ordering is not None:
        return JobPage(jobs=[], total=None, partial=True, progress=model.progress)
    db = model.db
    conditions, values = _conditions(queue=ask.queue, type=ask.type, error_type=ask.error_type)
    for bound, at in ((" AND finished_at >= ?", ask.since), (" AND finished_at <= ?", ask.until)):
        if at is not None:
            conditions += bound
            values.append(at)
    if (ask.error_type, ask.since, ask.until) == (None, None, None):
        by_type = dead_of_types(db, ask.queue)
        total = sum(by_type.values()) if ask.type is None else by_type.get(ask.type, 0)
    else:
        total = db.execute(f"SELECT count(*) FROM jobs WHERE dead_letter = 1{conditions}", values).fetchone()[0]
    limit = limit_of(ask.limit)
    found = db.execute(
        f"SELECT n, finished_at, id FROM jobs WHERE dead_letter = 1{conditions} AND (finished_at, id) < (?, ?) "
        "ORDER BY finished_at DESC, id DESC LIMIT ? OFFSET ?",
        (*values, *position_of(ask.cursor), limit + 1, min(ask.offset, MAX_OFFSET)),
    ).fetchall()
    shown = job_rows(db, [row[0] for row in found[:limit]], whole=ask.whole)
    cursor = cursor_after(*found[len(shown) - 1][1:]) if len(shown) < len(found) else None
    return JobPage(jobs=shown, total=total, next_cursor=cursor, partial=model.partial, progress=model.progress)


def dead_letter_stats(model: Model, queue: str | None) -> DeadLetterStats:
    """Of one queue, or of all. Nothing is said until all is read by a rebuild."""
    if model.ordering is not None:
        return DeadLetterStats(total=0, by_queue={}, by_type={}, by_error_type={}, partial=True, progress=model.progress)
    db = model.db
    conditions, values = _conditions(queue=queue)
    where = f"FROM jobs WHERE dead_letter = 1{conditions}"
    by_type = dead_of_types(db, queue)
    total = sum(by_type.values())
    return DeadLetterStats(
        total=total,
        by_queue=dead_of_queues(db) if queue is None else {queue: total} if total else {},
        by_type=by_type,
        by_error_type=dict(db.execute(f"SELECT coalesce(error_type, 'unknown'), count(*) {where} GROUP BY 1", values)),
        oldest_at=db.execute(f"SELECT min(finished_at) {where}", values).fetchone()[0],
        newest_at=db.execute(f"SELECT max(finished_at) {where}", values).fetchone()[0],
        partial=model.partial,
        progress=model.progress,
    )


def _conditions(**wanted: str | None) -> tuple[str, list[Any]]:
    """Equalities for what is not None; the names are columns."""
    given = {name: value for name, value in wanted.items() if value is not None}
    return "".join(f" AND {name} = ?" for name in given), list(given.values())


# Queues


def queue(model: Model, name: str, now: int) -> Queue:
    """One queue; all zero if nothing is known of it."""
    created = model.db.execute("SELECT created_at FROM queues WHERE name = ?", (name,)).fetchone()
    return _queue(model, name, created[0] if created else None, now, tuple(WINDOWS))


def queues(model: Model, ask: QueuesAsk, now: int) -> QueuePage:
    """A page of queues by name."""
    named = (
        "(SELECT name, created_at FROM queues UNION ALL "
        "SELECT value, NULL FROM json_each(?) WHERE value NOT IN (SELECT name FROM queues))"
    )
    also = msgspec.json.encode(ask.also).decode()
    fits = " OR ".join("name GLOB ?" for _ in ask.patterns) or "true"
    globs = tuple(_glob(pattern) for pattern in ask.patterns)
    if ask.search is not None:
        fits, globs = f"({fits}) AND instr(lower(name), lower(?))", (*globs, ask.search)
    total = model.db.execute(f"SELECT count(*) FROM {named} WHERE {fits}", (also, *globs)).fetchone()[0]
    limit = limit_of(ask.limit)
    found = model.db.execute(
        f"SELECT name, created_at FROM {named} WHERE ({fits}) AND name > ? ORDER BY name LIMIT ? OFFSET ?",
        (also, *globs, ask.cursor or "", limit + 1, ask.offset),
    ).fetchall()
    page = [_queue(model, name, created_at, now, _LISTED) for name, created_at in found[:limit]]
    if ask.backlog:
        page = [replace(queue, backlog=model.counter.backlog(queue.name, queue.counts.unended, now)) for queue in page]
    cursor = page[-1].name if len(found) > limit else None
    return QueuePage(queues=page, total=total, next_cursor=cursor, partial=model.partial, progress=model.progress)


def _glob(pattern: str) -> str:
    """A pattern with no other wildcard than `*`."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def _queue(model: Model, name: str, created_at: int | None, now: int, spans: Sequence[str]) -> Queue:
    db = model.db
    by_state = counts_of(db, name)
    dead = by_state.pop(DEAD, 0)
    return Queue(
        name=name,
        created_at=created_at,
        counts=Counts(**by_state),
        dead_letter=dead,
        partial=model.partial,
        progress=model.progress,
        oldest_available_at=_oldest(db, name),
        **model.counter.recent(name, now, spans),
    )


def totals(model: Model, now: int) -> Totals:
    """All queues together, by as many rows as there are queues and spans of time, not by the jobs."""
    db = model.db
    by_state = counts_of(db)
    dead = by_state.pop(DEAD, 0)
    [queues] = db.execute("SELECT count(*) FROM queues").fetchone()
    busy = {name for (name, state), n in counts_of_queues(db).items() if n and state in _BUSY}
    return Totals(
        counts=Counts(**by_state),
        dead_letter=dead,
        queues=queues,
        queues_busy=len(busy),
        partial=model.partial,
        progress=model.progress,
        oldest_available_at=_oldest(db, None),
        **model.counter.recent(None, now, tuple(WINDOWS)),
    )


def _oldest(db: sqlite3.Connection, queue: str | None) -> int | None:
    return min((waits.since for waits in first_waiting(db, queue)), default=None)


def levels(model: Model, name: str) -> Levels:
    """The available jobs of a queue by priority, the highest first."""
    found = model.db.execute(
        "SELECT priority, count(*) FROM jobs INDEXED BY waiting WHERE state = 'available' AND queue = ? "
        "GROUP BY 1 ORDER BY 1 DESC",
        (name,),
    )
    return Levels(counts=dict(found.fetchall()), partial=model.partial, progress=model.progress)


# The safety net


FIRST: Final = (-1, "")
"""Ahead of every job."""


class WaitingJob(NamedTuple):
    """Where tokens lie: one ready subject."""

    queue: str
    priority: int


def waiting_kinds(model: Model) -> Iterator[WaitingJob]:
    """Every (queue, priority) that has available jobs, by one look at the index for each."""
    return (WaitingJob(waits.queue, waits.priority) for waits in first_waiting(model.db))


def waiting_before(
    model: Model, kind: WaitingJob, at: int, number: int, after: tuple[int, str] = FIRST
) -> list[tuple[int, str]]:
    """Times and ids, behind `after`, of jobs that became available before `at`, the oldest first."""
    return model.db.execute(
        "SELECT enqueued_at, id FROM jobs INDEXED BY waiting WHERE state = 'available' AND queue = ? AND priority = ? "
        "AND enqueued_at < ? AND (enqueued_at, id) > (?, ?) ORDER BY enqueued_at, id LIMIT ?",
        (*kind, at, *after, number),
    ).fetchall()


def long_due(model: Model, at: int, number: int, after: tuple[int, str] = FIRST) -> list[tuple[int, str]]:
    """Times and ids, behind `after`, of jobs whose timer was due before `at`, the oldest first."""
    return model.db.execute(
        "SELECT due_at, id FROM jobs WHERE due_at < ? AND (due_at, id) > (?, ?) ORDER BY due_at, id LIMIT ?",
        (at, *after, number),
    ).fetchall()
