"""The workers in the read model: their last heartbeats, and the jobs that they hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from ojs_engine.domain.transitions import LIVENESS_MS
from ojs_engine.store.workers.presence import STOPPED, WorkerRecord, worker_reader
from ojs_index.asking.messages import MAX_OFFSET, MAX_PAGE, WorkerPage, WorkerRow, WorkersAsk, WorkerSummary

if TYPE_CHECKING:
    from ojs_index.sqlite.model import Model, Seen

_STALE: Final = "stale"
_QUIET: Final = ("quiet", "drain")


def apply(db: sqlite3.Connection, batch: Sequence[Seen]) -> None:
    """Take up heartbeats, in order of their sequence, inside the caller's transaction.

    A worker that left has no row.
    """
    newest = {seen.record.job_id: seen for seen in batch}
    rows = []
    gone = []
    for token, seen in newest.items():
        record, worker = seen.record, seen.worker
        if worker is None or worker.state == STOPPED:
            gone.append((token, record.sequence))
        else:
            leaves_at = record.at + (record.ttl_s or 0) * 1_000
            rows.append(
                (token, record.sequence, worker.id, worker.state, worker.seen_at, leaves_at, _shown(record.data, worker))
            )
    db.executemany("DELETE FROM workers WHERE token = ? AND seq < ?", gone)
    db.executemany(
        "INSERT INTO workers VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (token) DO UPDATE SET seq = excluded.seq, "
        "state = excluded.state, seen_at = excluded.seen_at, leaves_at = excluded.leaves_at, record = excluded.record "
        "WHERE excluded.seq > seq",
        rows,
    )


def _shown(data: bytes, worker: WorkerRecord) -> bytes:
    """A worker's record without the ids of its jobs, which the index knows by the jobs."""
    return data if worker.complete is None else msgspec.json.encode(replace(worker, complete=None))


def forget(db: sqlite3.Connection, at: int) -> None:
    """Drop the workers whose records have left by then."""
    db.execute("DELETE FROM workers WHERE leaves_at < ?", (at,))


def page(model: Model, ask: WorkersAsk, now: int) -> WorkerPage:
    """A page of workers by id, with a summary of all of them."""
    heard_since = now - LIVENESS_MS
    conditions, values = _conditions(ask, heard_since)
    db = model.db
    total = db.execute(f"SELECT count(*) FROM workers WHERE {conditions}", values).fetchone()[0]
    limit = max(1, min(ask.limit, MAX_PAGE))
    found = db.execute(
        f"SELECT token, record, seen_at FROM workers WHERE {conditions} AND id > ? ORDER BY id LIMIT ? OFFSET ?",
        (*values, ask.cursor or "", limit + 1, min(ask.offset, MAX_OFFSET)),
    ).fetchall()
    rows = []
    for token, data, at in found[:limit]:
        record = worker_reader.decode(token, data)
        rows.append(WorkerRow(record=record, held=_held(model, record.id), stale=at < heard_since))
    return WorkerPage(
        workers=rows,
        total=total,
        summary=_summary(model, heard_since),
        next_cursor=rows[-1].record.id if len(found) > limit else None,
        partial=model.partial,
        progress=model.progress,
    )


def _held(model: Model, worker: str) -> int:
    """The number of active jobs that it has; 0 until a rebuild has made their order."""
    if model.ordering is not None:
        return 0
    counted = "SELECT count(*) FROM jobs INDEXED BY of_worker WHERE worker = ? AND state = 'active'"
    number: int = model.db.execute(counted, (worker,)).fetchone()[0]
    return number


def _conditions(ask: WorkersAsk, heard_since: int) -> tuple[str, list[Any]]:
    conditions: list[str] = ["true"]
    values: list[Any] = []
    if ask.id is not None:
        conditions.append("id = ?")
        values.append(ask.id)
    if ask.queue is not None:
        conditions.append("EXISTS (SELECT 1 FROM json_each(CAST(record AS TEXT), '$.queues') WHERE value = ?)")
        values.append(ask.queue)
    if ask.search is not None:
        conditions.append(_FOUND)
        values += [ask.search] * 3
    if ask.state == _STALE:
        conditions.append("seen_at < ?")
        values.append(heard_since)
    elif ask.state is not None:
        conditions.append("seen_at >= ? AND state = ?")
        values += [heard_since, ask.state]
    return " AND ".join(conditions), values


_FOUND: Final = (
    "(instr(lower(id), lower(?)) OR instr(lower(coalesce(json_extract(CAST(record AS TEXT), '$.hostname'), '')), lower(?)) "
    "OR EXISTS (SELECT 1 FROM json_each(CAST(record AS TEXT), '$.queues') WHERE instr(lower(value), lower(?))))"
)
"""What `WorkersAsk.search` asks for."""
_JOBS_OF_WORKERS: Final = """
SELECT seen_at < ?, sum(coalesce(
    nullif((SELECT count(*) FROM jobs INDEXED BY of_worker WHERE worker = workers.id AND state = 'active'), 0),
    json_extract(CAST(record AS TEXT), '$.active_jobs'), 0
)) FROM workers GROUP BY 1"""
"""Active jobs by whether their worker is stale. A worker whose fetches don't name it says itself how many it has."""


def _summary(model: Model, heard_since: int) -> WorkerSummary:
    db = model.db
    held: dict[int, int] = {} if model.ordering is not None else dict(db.execute(_JOBS_OF_WORKERS, (heard_since,)))
    states: dict[str, int] = dict(
        db.execute("SELECT CASE WHEN seen_at < ? THEN 'stale' ELSE state END, count(*) FROM workers GROUP BY 1", (heard_since,))
    )
    return WorkerSummary(
        total=sum(states.values()),
        running=states.get("running", 0),
        quiet=sum(states.get(state, 0) for state in _QUIET),
        terminate=states.get("terminate", 0),
        stale=states.get(_STALE, 0),
        held=sum(held.values()),
        held_by_stale=held.get(1, 0),
    )
