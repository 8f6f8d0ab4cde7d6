"""Reading the model: lists by keyset, statistics, and what the safety net looks for."""

from __future__ import annotations

import heapq
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from ojs_nats.job import State
from ojs_nats.queries import (
    MAX_ANSWER_BYTES,
    MAX_OFFSET,
    MAX_PAGE,
    Counts,
    DeadLettersAsk,
    DeadLetterStats,
    JobPage,
    JobRow,
    JobsAsk,
    Queue,
    QueuePage,
    QueuesAsk,
    Totals,
    cursor_after,
)
from ojs_projector.model import MINUTE_MS, Model
from ojs_projector.schema import COLUMNS, Row

__all__ = [
    "Waiting",
    "dead_letter_stats",
    "dead_letters",
    "jobs",
    "long_due",
    "queue",
    "queues",
    "totals",
    "waiting_before",
    "waiting_kinds",
]

_HOUR_MINUTES: Final = 60
_RATE_MINUTES: Final = 5
_ROW_BYTES: Final = 512
"""An answer's row without its tags, at most about this."""

_decode_tags: Final = msgspec.json.Decoder(tuple[str, ...]).decode


# Jobs


def jobs(model: Model, ask: JobsAsk) -> JobPage:
    """A page of jobs, the newest first: each combination of queue, type and state is one range of the index."""
    conditions, values = _conditions(state=ask.state, queue=ask.queue, type=ask.type)
    kinds = model.db.execute(f"SELECT queue, type, state, n FROM counts WHERE n > 0{conditions}", values).fetchall()
    limit = _limit(ask.limit)
    before = _position(ask.cursor)
    offset = min(ask.offset, MAX_OFFSET)
    wanted = limit + 1 + offset
    ranges = [_range(model.db, kind[:3], before) for kind in kinds]
    found = heapq.merge(*ranges, key=lambda row: (row.created_at, row.id), reverse=True)
    rows = list(itertools.islice(found, offset, wanted))
    return _page(model, rows, limit, sum(kind[3] for kind in kinds), "created_at")


def _range(db: sqlite3.Connection, kind: tuple[str, str, str], before: tuple[int, str]) -> Iterator[Row]:
    """The rows of one range as they are asked for: of many ranges most give only their first.

    Each statement is read to its end, so that all ranges share one that is prepared.
    """
    number = 1
    while True:
        rows = _rows(db, kind, before, number)
        yield from rows
        if len(rows) < number:
            return
        before = (rows[-1].created_at, rows[-1].id)
        number = min(number * 4, MAX_PAGE)


def _rows(db: sqlite3.Connection, kind: tuple[str, str, str], before: tuple[int, str], number: int) -> list[Row]:
    found = db.execute(
        f"SELECT {COLUMNS} FROM jobs WHERE queue = ? AND type = ? AND state = ? AND (created_at, id) < (?, ?) "
        "ORDER BY created_at DESC, id DESC LIMIT ?",
        (*kind, *before, number),
    )
    return [Row(*row) for row in found]


def dead_letters(model: Model, ask: DeadLettersAsk) -> JobPage:
    """A page of dead letters, the latest first."""
    conditions, values = _conditions(queue=ask.queue, type=ask.type)
    total = _dead(model.db, conditions, values)
    if (ask.error_type, ask.since, ask.until) != (None, None, None):
        more, sought = _conditions(error_type=ask.error_type)
        conditions, values = conditions + more, values + sought
        for bound, at in ((" AND finished_at >= ?", ask.since), (" AND finished_at <= ?", ask.until)):
            if at is not None:
                conditions += bound
                values.append(at)
        total = model.db.execute(f"SELECT count(*) FROM jobs WHERE dead_letter = 1{conditions}", values).fetchone()[0]
    limit = _limit(ask.limit)
    found = model.db.execute(
        f"SELECT {COLUMNS} FROM jobs WHERE dead_letter = 1{conditions} AND (finished_at, id) < (?, ?) "
        "ORDER BY finished_at DESC, id DESC LIMIT ? OFFSET ?",
        (*values, *_position(ask.cursor), limit + 1, min(ask.offset, MAX_OFFSET)),
    )
    return _page(model, [Row(*row) for row in found], limit, total, "finished_at")


def _dead(db: sqlite3.Connection, conditions: str, values: Sequence[Any]) -> int:
    """How many dead letters there are, by the numbers that are kept: conditions on queue and type only."""
    number: int = db.execute(f"SELECT coalesce(sum(dead), 0) FROM counts WHERE true{conditions}", values).fetchone()[0]
    return number


def dead_letter_stats(model: Model, queue: str | None) -> DeadLetterStats:
    db = model.db
    conditions, values = _conditions(queue=queue)
    where = f"FROM jobs WHERE dead_letter = 1{conditions}"

    def by(column: str) -> dict[str, int]:
        return dict(db.execute(f"SELECT {column}, sum(dead) FROM counts WHERE dead > 0{conditions} GROUP BY 1", values))

    return DeadLetterStats(
        total=_dead(db, conditions, values),
        by_queue=by("queue"),
        by_type=by("type"),
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


def _limit(asked: int) -> int:
    return max(1, min(asked, MAX_PAGE))


def _page(model: Model, rows: list[Row], limit: int, total: int, key: str) -> JobPage:
    """As many of `rows` as the limit and the answer's size allow."""
    taken: list[JobRow] = []
    size = 0
    for row in rows[:limit]:
        size += _ROW_BYTES + len(row.tags or b"")
        if taken and size > MAX_ANSWER_BYTES:
            break
        taken.append(_job_row(row))
    more = len(taken) < len(rows)
    last = rows[len(taken) - 1] if more else None
    cursor = cursor_after(getattr(last, key), last.id) if last is not None else None
    return JobPage(jobs=taken, total=total, next_cursor=cursor, partial=model.partial, progress=model.progress)


def _position(cursor: str | None) -> tuple[int, str]:
    """The (time, id) that a cursor stands at; ahead of everything without one. A cursor of another making stands there, too."""
    at, _, job_id = (cursor or "").partition(".")
    return (int(at), job_id) if at.isdecimal() and at.isascii() and len(at) < 19 else (1 << 62, "")


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
        tags=_decode_tags(row.tags) if row.tags else (),
        dead_letter=bool(row.dead_letter),
    )


# Queues


def queue(model: Model, name: str, now: int) -> Queue:
    """One queue; all zero if nothing is known of it."""
    created = model.db.execute("SELECT created_at FROM queues WHERE name = ?", (name,)).fetchone()
    return _queue(model, name, created[0] if created else None, now)


def queues(model: Model, ask: QueuesAsk, now: int) -> QueuePage:
    """A page of queues by name."""
    named = (
        "(SELECT name, created_at FROM queues UNION ALL "
        "SELECT value, NULL FROM json_each(?) WHERE value NOT IN (SELECT name FROM queues))"
    )
    also = msgspec.json.encode(ask.also).decode()
    total = model.db.execute(f"SELECT count(*) FROM {named}", (also,)).fetchone()[0]
    limit = _limit(ask.limit)
    found = model.db.execute(
        f"SELECT name, created_at FROM {named} WHERE name > ? ORDER BY name LIMIT ? OFFSET ?",
        (also, ask.cursor or "", limit + 1, ask.offset),
    ).fetchall()
    page = [_queue(model, name, created_at, now) for name, created_at in found[:limit]]
    cursor = page[-1].name if len(found) > limit else None
    return QueuePage(queues=page, total=total, next_cursor=cursor, partial=model.partial, progress=model.progress)


def _queue(model: Model, name: str, created_at: int | None, now: int) -> Queue:
    db = model.db
    by_state = dict(db.execute("SELECT state, sum(n) FROM counts WHERE queue = ? GROUP BY state", (name,)))
    dead = db.execute("SELECT coalesce(sum(dead), 0) FROM counts WHERE queue = ?", (name,)).fetchone()[0]
    return Queue(
        name=name,
        created_at=created_at,
        counts=Counts(**by_state),
        dead_letter=dead,
        partial=model.partial,
        progress=model.progress,
        **_lately(db, now, name),
    )


def totals(model: Model, now: int) -> Totals:
    """All queues together, by as many rows as there are kinds of jobs and minutes in an hour, not by the jobs."""
    db = model.db
    by_state = dict(db.execute("SELECT state, sum(n) FROM counts GROUP BY state"))
    dead, queues, busy = db.execute(
        "SELECT coalesce(sum(dead), 0), (SELECT count(*) FROM queues), "
        "count(DISTINCT queue) FILTER (WHERE n > 0 AND state IN ('available', 'active', 'retryable')) FROM counts"
    ).fetchone()
    return Totals(
        counts=Counts(**by_state),
        dead_letter=dead,
        queues=queues,
        queues_busy=busy,
        partial=model.partial,
        progress=model.progress,
        **_lately(db, now),
    )


class _Lately(TypedDict):
    """What the answers say of the last hour."""

    completed_last_hour: int
    failed_last_hour: int
    avg_duration_ms: float | None
    avg_wait_ms: float | None
    throughput_per_second: float
    failed_per_second: float


def _lately(db: sqlite3.Connection, now: int, queue: str | None = None) -> _Lately:
    minute = now // MINUTE_MS
    conditions, values = _conditions(queue=queue)
    completed, failed, duration_ms, wait_ms, lately, lately_failed = db.execute(
        "SELECT coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(duration_ms), 0), "
        "coalesce(sum(wait_ms), 0), coalesce(sum(completed) FILTER (WHERE minute > ?), 0), "
        "coalesce(sum(failed) FILTER (WHERE minute > ?), 0) "
        f"FROM minutes WHERE minute > ?{conditions}",
        (minute - _RATE_MINUTES, minute - _RATE_MINUTES, minute - _HOUR_MINUTES, *values),
    ).fetchone()
    return _Lately(
        completed_last_hour=completed,
        failed_last_hour=failed,
        avg_duration_ms=round(duration_ms / completed, 1) if completed else None,
        avg_wait_ms=round(wait_ms / completed, 1) if completed else None,
        throughput_per_second=round(lately / (_RATE_MINUTES * 60), 3),
        failed_per_second=round(lately_failed / (_RATE_MINUTES * 60), 3),
    )


# The safety net


class Waiting(NamedTuple):
    """Where tokens lie: one ready subject."""

    queue: str
    priority: int


def waiting_kinds(model: Model) -> Iterator[Waiting]:
    """Every (queue, priority) that has available jobs, by one look at the index for each."""
    at: tuple[str, int] = ("", 0)
    while True:
        found = model.db.execute(
            "SELECT queue, priority FROM jobs WHERE state = 'available' AND (queue, priority) > (?, ?) "
            "ORDER BY queue, priority LIMIT 1",
            at,
        ).fetchone()
        if found is None:
            return
        at = (found[0], found[1])
        yield Waiting(*at)


def waiting_before(model: Model, kind: Waiting, at: int, number: int) -> list[str]:
    """Ids of jobs that became available before `at`, the oldest first."""
    found = model.db.execute(
        "SELECT id FROM jobs WHERE state = 'available' AND queue = ? AND priority = ? AND enqueued_at < ? "
        "ORDER BY enqueued_at LIMIT ?",
        (*kind, at, number),
    )
    return [row[0] for row in found]


def long_due(model: Model, at: int, number: int) -> list[str]:
    """Ids of jobs whose timer was due before `at`."""
    return [row[0] for row in model.db.execute("SELECT id FROM jobs WHERE due_at < ? ORDER BY due_at LIMIT ?", (at, number))]
