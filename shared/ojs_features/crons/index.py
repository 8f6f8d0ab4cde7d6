"""Cron entries in the index: when each has to be looked at, which the safety net watches over."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from ojs_engine.jetstream.feed import Record
from ojs_features.crons.record import Cron
from ojs_index.asking.messages import Answer, Ask
from ojs_index.followed import Index, Table

QUESTION: Final = "late_crons"
_SHOWN: Final = 20
"""Late entries in one answer. Those that wait for the job before them are among them, and are no concern."""
_SCHEMA: Final = """
CREATE TABLE crons (token TEXT PRIMARY KEY, seq INTEGER NOT NULL, due_at INTEGER NOT NULL) WITHOUT ROWID;
"""


class LateCronsAsk(Ask, frozen=True, kw_only=True, omit_defaults=True):
    """Some entries whose timer was due at a time (Unix ms), and that have not run."""

    due: int = 0


class LateCrons(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """Late entries."""

    tokens: list[str]
    """Their encoded names."""


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


def _forget(_db: sqlite3.Connection, _now: int) -> None:
    """Drop nothing: the record of an entry has a TTL only once it is deleted, and then it has no row."""


def _count(db: sqlite3.Connection, _until: int) -> int:
    [[found]] = db.execute("SELECT count(*) FROM crons").fetchall()
    return int(found)


TABLE: Final = Table(name="crons", schema=_SCHEMA, apply=apply_crons, forget=_forget, count=_count)


def late_crons(index: Index, ask: LateCronsAsk) -> LateCrons:
    """Return up to `_SHOWN` late entries."""
    return LateCrons(tokens=overdue(index.db, ask.due, "", _SHOWN), partial=index.partial, progress=index.progress)
