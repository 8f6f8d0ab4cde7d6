"""The locks of unique jobs in the index: what is unique now, and which locks their jobs may have left behind.

A lock without a time to live belongs to a job that lives, or to nobody any more (docs/adr/012). It is looked at a
minute after it was written and a minute after its owner ended, not again and again: so nothing here grows with the
number of locks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, NamedTuple

from ojs_api.unique import UniqueJob
from ojs_engine.domain.job import TERMINAL, State
from ojs_engine.jetstream.feed import Record
from ojs_features.unique.locks import Lock, LockVerdict
from ojs_features.unique.timings import LeftLockTimings
from ojs_index.asking.messages import MAX_COUNTED, MAX_OFFSET, MAX_PAGE, PageAnswer, PageAsk
from ojs_index.followed import Index, JobEnds, Table

QUESTION: Final = "unique_jobs"
"""The name of the question."""
_CHECK_MS: Final = LeftLockTimings().check_ms
_SCHEMA: Final = """
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


class UniqueAsk(PageAsk, frozen=True, kw_only=True, omit_defaults=True):
    """The fingerprints of unique jobs, in order."""


class UniquePage(PageAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the fingerprints. `total` counts them on every page, up to `MAX_COUNTED`."""

    locks: list[UniqueJob]
    total: int


def _apply(db: sqlite3.Connection, found: Iterable[tuple[Record, Lock | None]]) -> None:
    """Take up locks in order of their sequence. One that has left, or that can't be read, has no row."""
    newest = {record.job_id: (record, lock) for record, lock in found}
    rows = []
    gone = []
    for key, (record, lock) in newest.items():
        if lock is None:
            gone.append((key, record.sequence))
            continue
        leaves_at = None if record.ttl_s is None else record.at + record.ttl_s * 1_000
        check_at = record.at + _CHECK_MS if leaves_at is None else None
        rows.append((key, record.sequence, lock.owner, leaves_at, check_at))
    db.executemany("DELETE FROM locks WHERE key = ? AND seq < ?", gone)
    db.executemany(
        "INSERT INTO locks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq, owner = excluded.owner, "
        "leaves_at = excluded.leaves_at, check_at = excluded.check_at WHERE excluded.seq > seq",
        rows,
    )


def _ended(db: sqlite3.Connection, ended: Iterable[tuple[str, int]]) -> None:
    """Note when the locks are to be checked that unique jobs still hold which have ended (id, Unix ms)."""
    db.executemany(
        "UPDATE locks SET check_at = ? WHERE owner = ? AND leaves_at IS NULL",
        [(at + _CHECK_MS, job_id) for job_id, at in ended],
    )


def _forget(db: sqlite3.Connection, now: int) -> None:
    """Drop the locks whose time to live is over."""
    db.execute("DELETE FROM locks WHERE leaves_at < ?", (now,))


TABLE: Final = Table(
    name="locks",
    schema=_SCHEMA,
    apply=_apply,
    forget=_forget,
    count=None,
    ends=JobEnds(asks=attrgetter("unique_key"), note=_ended),
)


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


def unique_jobs(index: Index, ask: UniqueAsk) -> UniquePage:
    """Return a page of the fingerprints that jobs hold which have not ended."""
    db = index.db
    limit = max(1, min(ask.limit, MAX_PAGE))
    found = db.execute(
        f"SELECT key, jobs.id, type, queue, state {_SHOWN} AND key > ? ORDER BY key LIMIT ? OFFSET ?",
        (ask.cursor or "", limit + 1, min(ask.offset, MAX_OFFSET)),
    ).fetchall()
    rows = [UniqueJob(key=key, job_id=job, type=kind, queue=queue, state=state) for key, job, kind, queue, state in found]
    return UniquePage(
        locks=rows[:limit],
        total=db.execute(f"SELECT count(*) FROM (SELECT 1 {_SHOWN} LIMIT ?)", (MAX_COUNTED,)).fetchone()[0],
        next_cursor=rows[limit - 1].key if len(rows) > limit else None,
        partial=index.partial,
        progress=index.progress,
    )
