"""What lists follow and are found by: left out while an index is built anew, made at its end, each sorted
(docs/adr/006).

Their rows come in no order of theirs, so that one by one nearly each would touch a page of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ojs_index.sqlite.labels import ROWS

# Most end with the creation time. Jobs of one time are read together and sorted by their ids (reading/orders.py), so that only
# `moments` has the ids, for times that very many have. A transition of a job changes those with a state in them, and no other.
_INDEXES: Final = {
    "of_state": "jobs (state, created_at)",
    "of_queue": "jobs (queue, state, created_at)",
    "of_type": "jobs (type, created_at)",
    "of_worker": "jobs (worker, state, created_at) WHERE worker IS NOT NULL",
    "moments": "jobs (created_at, id)",
    "leaving": "jobs (leaves_at) WHERE leaves_at IS NOT NULL",
}
_DONE: Final = "INSERT INTO meta VALUES ('ordered', '1') ON CONFLICT DO UPDATE SET value = '1'"

STEPS: Final = (
    *([f"CREATE INDEX IF NOT EXISTS {name} ON {columns}"] for name, columns in _INDEXES.items()),
    ["DELETE FROM labels", ROWS, _DONE],
)
"""One transaction each, and all may be done again: it may have ended anywhere the last time."""

_SORTERS: Final = 2
"""Threads of SQLite's own that sort beside the one that reads and writes."""
_SORTED_KIB: Final = 8_000
"""What is sorted in memory, before it is merged. More is slower: it is in no cache of the processor."""
_ASKED_EVERY: Final = 1_000_000
"""Instructions of SQLite between two looks whether to stop: some 50 ms."""

SCHEMA: Final = "\n".join(f"CREATE INDEX {name} ON {columns};" for name, columns in _INDEXES.items())


def are_there(db: sqlite3.Connection) -> bool:
    """Whether lists can be answered."""
    return ("0",) not in db.execute("SELECT value FROM meta WHERE key = 'ordered'")


def leave_out(db: sqlite3.Connection) -> None:
    """Of an index without rows."""
    for name in _INDEXES:
        db.execute(f"DROP INDEX {name}")
    db.execute("INSERT INTO meta VALUES ('ordered', '0')")


class Ordering:
    """Makes them, in a thread and on a connection of its own: the event loop goes on.

    No one else may write meanwhile.
    """

    def __init__(self, path: Path, steps: Sequence[Sequence[str]] = STEPS) -> None:
        """`steps` are the statements of one transaction each; others than these are for tests."""
        self._path = path
        self._steps = steps
        self._stopped = False
        self.progress = 0.0
        """From 0 to 1."""

    async def run(self) -> None:
        """Returns when lists can be answered; cancelled, it leaves off. Raises sqlite3.DatabaseError."""
        self._stopped = False
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        work = asyncio.get_running_loop().run_in_executor(None, self._work, db)
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            self._stopped = True
            with contextlib.suppress(sqlite3.OperationalError):
                await work
            raise
        finally:
            db.close()

    def _work(self, db: sqlite3.Connection) -> None:
        # An interrupt would be lost between two statements.
        db.set_progress_handler(lambda: self._stopped, _ASKED_EVERY)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA threads = {_SORTERS}")
        db.execute(f"PRAGMA cache_size = -{_SORTED_KIB}")
        for done, step in enumerate(self._steps):
            self.progress = done / len(self._steps)
            if self._stopped:
                return
            db.execute("BEGIN IMMEDIATE")
            for statement in step:
                db.execute(statement)
            db.execute("COMMIT")
