"""The locks of unique jobs in the read model: what is unique now, and which locks their jobs may have left behind.

A lock without a time to live belongs to a job that lives, or to nobody any more (docs/adr/012). It is looked at a
minute after it was written and a minute after its owner ended, not again and again: so nothing here grows with the
number of locks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

import structlog

from ojs_engine.domain.job import TERMINAL, State
from ojs_engine.jetstream.feed import Record
from ojs_engine.read.messages import MAX_COUNTED, MAX_OFFSET, MAX_PAGE, UniqueAsk, UniquePage, UniqueRow
from ojs_engine.store.unique.locks import LockVerdict, lock_reader

log = structlog.get_logger(__name__)

SCHEMA: Final = """
CREATE TABLE locks (
    key TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    owner TEXT NOT NULL,
    leaves_at INTEGER,
    check_at INTEGER
) WITHOUT ROWID;
CREATE INDEX locks_of ON locks (owner) WHERE leaves_at IS NULL;
CREATE INDEX locks_suspect ON locks (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX locks_leaving ON locks (leaves_at) WHERE leaves_at IS NOT NULL;
"""

_LIVE: Final = ", ".join(f"'{state}'" for state in State if state not in TERMINAL)
_SHOWN: Final = f"FROM locks JOIN jobs ON jobs.id = locks.owner WHERE jobs.state IN ({_LIVE})"


class Suspect(NamedTuple):
    """A row of `locks` that is to be looked at."""

    key: str
    seq: int
    check_at: int


def apply_locks(db: sqlite3.Connection, records: Iterable[Record], check_ms: int) -> None:
    """Take up locks in order of their sequence; one without data has left. They are checked after `check_ms`."""
    newest = {record.job_id: record for record in records}
    rows = []
    gone = []
    for key, record in newest.items():
        owner = _owner(record)
        if owner is None:
            gone.append((key, record.sequence))
            continue
        leaves_at = None if record.ttl_s is None else record.at + record.ttl_s * 1_000
        check_at = record.at + check_ms if leaves_at is None else None
        rows.append((key, record.sequence, owner, leaves_at, check_at))
    db.executemany("DELETE FROM locks WHERE key = ? AND seq < ?", gone)
    db.executemany(
        "INSERT INTO locks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq, owner = excluded.owner, "
        "leaves_at = excluded.leaves_at, check_at = excluded.check_at WHERE excluded.seq > seq",
        rows,
    )


def _owner(record: Record) -> str | None:
    """The id of the job that a lock names; None for a lock that has left, or that can't be read."""
    lock = lock_reader.read(record.job_id, record.sequence, record.data) if record.data else None
    return None if lock is None else lock.owner


def owners_ended(db: sqlite3.Connection, ended: Iterable[tuple[str, int]]) -> None:
    """Note when the locks are to be checked that unique jobs still hold which have ended (id, Unix ms)."""
    db.executemany(
        "UPDATE locks SET check_at = ? WHERE owner = ? AND leaves_at IS NULL",
        [(check_at, job_id) for job_id, check_at in ended],
    )


def forget_locks(db: sqlite3.Connection, now: int) -> None:
    """Drop the locks whose time to live is over."""
    db.execute("DELETE FROM locks WHERE leaves_at < ?", (now,))


def suspects(db: sqlite3.Connection, now: int, number: int) -> list[Suspect]:
    """Locks that are to be looked at, those that have waited longest first."""
    found = db.execute("SELECT key, seq, check_at FROM locks WHERE check_at <= ? ORDER BY check_at LIMIT ?", (now, number))
    return [Suspect(*row) for row in found]


def settle(db: sqlite3.Connection, suspect: Suspect, verdict: LockVerdict, again_at: int) -> None:
    """Note what was found, unless the index has heard of a change meanwhile: one that is held is checked again when its
    owner has ended; one that was let go has its new revision on the way here, and is checked again if it doesn't come.
    """
    if verdict == "gone":
        db.execute("DELETE FROM locks WHERE key = ? AND seq = ? AND check_at = ?", suspect)
        return
    again = None if verdict == "held" else again_at
    db.execute("UPDATE locks SET check_at = ? WHERE key = ? AND seq = ? AND check_at = ?", (again, *suspect))


def unique_jobs(db: sqlite3.Connection, ask: UniqueAsk, *, partial: bool, progress: float) -> UniquePage:
    """A page of the fingerprints that jobs hold which have not ended."""
    limit = max(1, min(ask.limit, MAX_PAGE))
    found = db.execute(
        f"SELECT key, jobs.id, type, queue, state {_SHOWN} AND key > ? ORDER BY key LIMIT ? OFFSET ?",
        (ask.cursor or "", limit + 1, min(ask.offset, MAX_OFFSET)),
    ).fetchall()
    rows = [
        UniqueRow(key=key, job_id=job, type=kind, queue=queue, state=State(state)) for key, job, kind, queue, state in found
    ]
    return UniquePage(
        locks=rows[:limit],
        total=db.execute(f"SELECT count(*) FROM (SELECT 1 {_SHOWN} LIMIT ?)", (MAX_COUNTED,)).fetchone()[0],
        next_cursor=rows[limit - 1].key if len(rows) > limit else None,
        partial=partial,
        progress=progress,
    )
