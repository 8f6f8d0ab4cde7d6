"""The read model's file: its tables, and what a job document becomes in them (docs/adr/006)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_engine.domain.job import Job, State
from ojs_engine.domain.members import LABELLED
from ojs_engine.jetstream.feed import Record
from ojs_index.sqlite.checkpoints import CheckpointBounds
from ojs_index.sqlite.labels import SCHEMA as LABELS
from ojs_index.sqlite.numbers import SCHEMA as NUMBERS
from ojs_index.sqlite.orders import SCHEMA as ORDERS
from ojs_index.sqlite.starts import SCHEMA as STARTS
from ojs_index.sqlite.unreadable import SCHEMA as UNREADABLE

_VERSION: Final = 16 + 1_000 * (len(LABELLED) - 1)
"""Raise its first number with every change below: a file of another version is built anew."""

_LARGEST_LOG: Final = 64 * 1024 * 1024

_PAGE_BYTES: Final = 8_192
"""A job grows with each transition: in a larger page it moves less often."""
_LONGEST_LOG: Final = 2 * CheckpointBounds().long
"""Pages of the log that are moved by whoever has written the last of them, should nobody else have done it (checkpoints.py)."""

# The indexes here are partial, so a job pays only for the state it is in, and for what is unusual of it. `n` is this file's own
# number of a job, which stays while the job does; `labels` is what it is found by, as JSON (labels.py); `entries` the number of
# the last entry of its log, up to which they are counted; `document` the job as it is stored, if it is small.
_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
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
    entries INTEGER NOT NULL,
    document BLOB
);
CREATE INDEX of_error ON jobs (error_type, created_at) WHERE error_type IS NOT NULL;
CREATE INDEX priorities ON jobs (state, priority, created_at) WHERE priority <> 0;
CREATE INDEX times ON jobs (state, scheduled_at, created_at) WHERE scheduled_at IS NOT NULL;
CREATE INDEX waiting ON jobs (queue, priority, enqueued_at) WHERE state = 'available';
CREATE INDEX due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX dead ON jobs (finished_at, id, error_type, dead_letter) WHERE dead_letter = 1;
CREATE INDEX dead_of_queue ON jobs (queue, finished_at, id, error_type, dead_letter) WHERE dead_letter = 1;
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


class Known(Struct, frozen=True):
    """What a row of `jobs` said before the revision that is taken up."""

    n: int
    id: str
    seq: int
    queue: str
    type: str
    state: str
    dead_letter: int
    entries: int
    attempt: int
    enqueued_at: int | None
    started_at: int | None
    created_at: int
    priority: int
    scheduled_at: int | None
    labels: str | None

    @property
    def lasting(self) -> Lasting:
        return self.type, self.queue, self.priority, self.created_at, self.scheduled_at, self.labels


Lasting = tuple[str, str, int, int, int | None, str | None]
"""What hardly ever changes of a job: type, queue, priority, creation, its schedule, and its labels. Where it does,
its row is replaced; a row that stays is changed in what `changing` returns.
"""

KNOWN: Final = ", ".join(Known.__struct_fields__)
_CHANGING: Final = (
    "seq",
    "state",
    "attempt",
    "enqueued_at",
    "started_at",
    "finished_at",
    "error_type",
    "worker",
    "tags",
    "dead_letter",
    "due_at",
    "leaves_at",
    "entries",
    "document",
)
_LASTING: Final = ("n", "id", "type", "queue", "priority", "created_at", "scheduled_at", "labels")
INSERT: Final = f"INSERT INTO jobs ({', '.join((*_CHANGING, *_LASTING))}) VALUES ({', '.join('?' * 22)})"
"""The values of `changing`, the number, the id, and what is lasting."""
UPDATE: Final = f"UPDATE jobs SET {', '.join(f'{name} = ?' for name in _CHANGING)} WHERE n = ?"
"""The values of `changing`, and the number."""


def changing(job: Job, record: Record, copied: int) -> tuple[Any, ...]:
    """What a transition may change; `copied` is how large a document may be that is kept (bytes)."""
    log = job.transitions
    data = record.data
    return (
        record.sequence,
        _NAMES[job.state],
        job.attempt,
        job.enqueued_at,
        job.started_at,
        _finished_at(job),
        None if job.error is None else job.error.type,
        job.worker,
        msgspec.json.encode(job.tags) if job.tags else None,
        int(job.dead_letter),
        None if job.timer is None else job.timer.at,
        record.at + record.ttl_s * 1_000 if record.ttl_s else None,
        log[-1].n if log else 0,
        data if len(data) <= copied else None,
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


def connect(path: Path | None, of_features: str = "") -> sqlite3.Connection:
    """Open the file, or a model in memory; a file that is of another version, or none of ours, is replaced.

    `of_features` makes their tables.
    """
    if path is None:
        return _open(":memory:", of_features)
    try:
        db = _open(path, of_features)
        found = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError:
        found, db = -1, None
    if found == _VERSION and db is not None:
        return db
    if db is not None:
        db.close()
    wipe(path)
    return _open(path, of_features)


def wipe(path: Path) -> None:
    """Delete the file and what SQLite keeps beside it."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _open(path: Path | str, of_features: str) -> sqlite3.Connection:
    if isinstance(path, Path):
        # Copies of jobs are in it. SQLite makes what it keeps beside it alike.
        path.touch(mode=0o600)
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        # A power cut may cost the last transactions: they are read again from the bucket.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        # What the orders of a rebuild make of it is given back.
        db.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST_LOG}")
        # What a savepoint would restore is never written to the disk.
        db.execute("PRAGMA temp_store = MEMORY")
        tables: Any = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables:
            parts = f"{_SCHEMA}{ORDERS}{NUMBERS}{LABELS}{STARTS}{UNREADABLE}{of_features}"
            db.executescript(f"{parts} PRAGMA user_version = {_VERSION};")
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db
