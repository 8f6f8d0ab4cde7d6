"""Cron entries in the read model: when each has to be looked at, which the safety net watches over."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from ojs_core.domain.cron.record import Cron
from ojs_core.jetstream.feed import Record

SCHEMA: Final = """
CREATE TABLE crons (token TEXT PRIMARY KEY, seq INTEGER NOT NULL, due_at INTEGER NOT NULL) WITHOUT ROWID;
"""


def apply_crons(db: sqlite3.Connection, found: Iterable[tuple[Record, Cron | None]]) -> None:
    """Take up records in order of their sequence. An entry that wants nothing (paused, deleted, gone) has no row."""
    newest = {record.job_id: (record.sequence, cron) for record, cron in found}
    rows = []
    gone = []
    for token, (sequence, cron) in newest.items():
        if cron is None or cron.timer is None:
            gone.append((token, sequence))
        else:
            rows.append((token, sequence, cron.timer.at))
    db.executemany("DELETE FROM crons WHERE token = ? AND seq < ?", gone)
    db.executemany(
        "INSERT INTO crons VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq, due_at = excluded.due_at "
        "WHERE excluded.seq > seq",
        rows,
    )


def overdue(db: sqlite3.Connection, at: int, after: str, number: int) -> list[str]:
    """Encoded names, in order, behind `after`, of entries whose timer was due before `at`.

    An entry that looks again and again after the job before it is one of them: its timer moves on without its record.
    """
    found = db.execute("SELECT token FROM crons WHERE token > ? AND due_at < ? ORDER BY token LIMIT ?", (after, at, number))
    return [row[0] for row in found]
