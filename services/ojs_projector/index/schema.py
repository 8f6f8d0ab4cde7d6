"""The read model's file: its tables, and what a job document becomes in them (docs/adr/006)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ojs_core.domain.job import Job, State
from ojs_projector.index.crons import SCHEMA as CRONS
from ojs_projector.index.documents import SCHEMA as DOCUMENTS
from ojs_projector.index.labels import SCHEMA as LABELS
from ojs_projector.index.labels import labels_of
from ojs_projector.index.locks import SCHEMA as LOCKS
from ojs_projector.index.numbers import SCHEMA as NUMBERS
from ojs_projector.index.orders import SCHEMA as ORDERS
from ojs_projector.index.starts import SCHEMA as STARTS
from ojs_projector.index.texts import SCHEMA as TEXTS
from ojs_projector.index.time_buckets import SCHEMA as SPANS
from ojs_projector.index.unreadable import SCHEMA as UNREADABLE
from ojs_projector.index.workflows import SCHEMA as WORKFLOWS

_VERSION: Final = 14
"""Raise it with every change below: a file of another version is built anew."""

_LARGEST_LOG: Final = 64 * 1024 * 1024

# The indexes here are partial, so a job pays only for the state it is in.
_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    enqueued_at INTEGER,
    scheduled_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    error_type TEXT,
    worker TEXT,
    tags BLOB,
    dead_letter INTEGER NOT NULL,
    due_at INTEGER,
    leaves_at INTEGER,
    labels TEXT,
    place INTEGER,
    mark INTEGER,
    entries INTEGER NOT NULL,
    planned INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX times ON jobs (state, scheduled_at, created_at, id) WHERE scheduled_at IS NOT NULL;
CREATE INDEX waiting ON jobs (queue, priority, enqueued_at) WHERE state = 'available';
CREATE INDEX due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX dead ON jobs (finished_at, id, error_type, dead_letter) WHERE dead_letter = 1;
CREATE INDEX dead_of_queue ON jobs (queue, finished_at, id, error_type, dead_letter) WHERE dead_letter = 1;
CREATE INDEX leaving ON jobs (leaves_at) WHERE leaves_at IS NOT NULL;
CREATE TABLE workers (
    token TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    leaves_at INTEGER NOT NULL,
    record BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX names ON workers (id);
CREATE TABLE queues (name TEXT PRIMARY KEY, created_at INTEGER NOT NULL) WITHOUT ROWID;
"""


_NAMES: Final = {state: state.value for state in State}
"""`.value` is a descriptor in Python, which costs more than the rest of a row."""


class Row(NamedTuple):
    """One line of `jobs`."""

    id: str
    seq: int
    type: str
    queue: str
    state: str
    priority: int
    attempt: int
    created_at: int
    enqueued_at: int | None
    scheduled_at: int | None
    started_at: int | None
    finished_at: int | None
    error_type: str | None
    worker: str | None
    tags: bytes | None
    dead_letter: int
    due_at: int | None
    leaves_at: int | None
    labels: str | None
    """What it is found by, as JSON (labels.py)."""
    place: int | None
    """Where its arguments are in the text index (texts.py), and what they looked like then; None if they are not there."""
    mark: int | None
    entries: int
    """The number of the last entry of its log, up to which they are counted."""
    planned: int
    """1 if it has or had a time that it is scheduled for."""


COLUMNS: Final = ", ".join(Row._fields)


def row_of(job: Job, sequence: int, leaves_at: int | None, place: int | None, mark: int | None) -> Row:
    """`sequence` is the revision's; `leaves_at` when its TTL ends (Unix ms); `place` and `mark` are of the text index."""
    # By place: names cost a tenth of what the rest of a row does.
    return Row(
        job.id,
        sequence,
        job.type,
        job.queue,
        _NAMES[job.state],
        job.priority,
        job.attempt,
        job.created_at,
        job.enqueued_at,
        job.scheduled_at,
        job.started_at,
        _finished_at(job),
        None if job.error is None else job.error.type,
        job.worker,
        msgspec.json.encode(job.tags) if job.tags else None,
        int(job.dead_letter),
        None if job.timer is None else job.timer.at,
        leaves_at,
        labels_of(job),
        place,
        mark,
        job.transitions[-1].n if job.transitions else 0,
        int(job.scheduled_at is not None),
    )


def _finished_at(job: Job) -> int | None:
    match job.state:
        case State.COMPLETED:
            return job.completed_at
        case State.CANCELLED:
            return job.cancelled_at
        case State.DISCARDED:
            return job.discarded_at
        case _:
            return None


def connect(path: Path | None) -> sqlite3.Connection:
    """Open the file, or a model in memory; a file that is of another version, or none of ours, is replaced."""
    if path is None:
        return _open(":memory:")
    try:
        db = _open(path)
        found = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError:
        found, db = -1, None
    if found == _VERSION and db is not None:
        return db
    if db is not None:
        db.close()
    wipe(path)
    return _open(path)


def wipe(path: Path) -> None:
    """Delete the file and what SQLite keeps beside it."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _open(path: Path | str) -> sqlite3.Connection:
    if isinstance(path, Path):
        # Words of arguments are in it. SQLite makes what it keeps beside it alike.
        path.touch(mode=0o600)
    db = sqlite3.connect(path, isolation_level=None)
    try:
        # A power cut may cost the last transactions: they are read again from the bucket.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        # What the orders of a rebuild make of it is given back.
        db.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")
        tables: Any = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables:
            parts = f"{_SCHEMA}{ORDERS}{NUMBERS}{DOCUMENTS}{SPANS}{LABELS}{TEXTS}{WORKFLOWS}{CRONS}{STARTS}{LOCKS}{UNREADABLE}"
            db.executescript(f"{parts} PRAGMA user_version = {_VERSION};")
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db
