"""Records that can't be read, in the read model: which there are, so that an operator can look at them and remove them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ojs_index.asking.messages import MAX_OFFSET, MAX_PAGE, UnreadableAsk, UnreadablePage, UnreadableRow

if TYPE_CHECKING:
    from ojs_index.sqlite.model import Model, Seen

SCHEMA: Final = """
CREATE TABLE unreadable (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    problem TEXT NOT NULL,
    leaves_at INTEGER,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""


def set_aside(db: sqlite3.Connection, batch: Iterable[Seen], *, known: bool) -> bool:
    """Note those of a batch that can't be read, and forget those that by now can, or are gone; in order of their sequence.

    `known`: whether some may be noted already, which is what is returned.
    """
    broken = {}
    sound = []
    for seen in batch:
        record = seen.record
        if seen.problem is not None:
            leaves_at = record.at + record.ttl_s * 1_000 if record.ttl_s else None
            row = (record.sequence, record.at, len(record.data), seen.problem, leaves_at)
            broken[_kind(record.kind), record.job_id] = row
        elif known or broken:
            key = (_kind(record.kind), record.job_id)
            broken.pop(key, None)
            sound.append((*key, record.sequence))
    db.executemany("DELETE FROM unreadable WHERE kind = ? AND name = ? AND seq < ?", sound)
    db.executemany(
        "INSERT INTO unreadable VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq, "
        "stored_at = excluded.stored_at, bytes = excluded.bytes, problem = excluded.problem, leaves_at = excluded.leaves_at "
        "WHERE excluded.seq > seq",
        [(*key, *row) for key, row in broken.items()],
    )
    return bool(broken) or (known and db.execute("SELECT count(*) FROM unreadable").fetchone()[0] > 0)


def _kind(kind: str) -> str:
    return "job" if kind == "gone" else kind


def forget_unreadable(db: sqlite3.Connection, now: int) -> None:
    """Drop what has left by its time to live."""
    db.execute("DELETE FROM unreadable WHERE leaves_at < ?", (now,))


def unreadable(model: Model, ask: UnreadableAsk) -> UnreadablePage:
    """A page of them, by kind and key."""
    limit = max(1, min(ask.limit, MAX_PAGE))
    kind, _, name = (ask.cursor or "").partition(".")
    condition, values = ("", []) if ask.kind is None else (" AND kind = ?", [ask.kind])
    total = model.db.execute(f"SELECT count(*) FROM unreadable WHERE true{condition}", values).fetchone()[0]
    found = model.db.execute(
        "SELECT kind, name, seq, stored_at, bytes, problem FROM unreadable "
        f"WHERE (kind, name) > (?, ?){condition} ORDER BY kind, name LIMIT ? OFFSET ?",
        (kind, name, *values, limit + 1, min(ask.offset, MAX_OFFSET)),
    ).fetchall()
    rows = [UnreadableRow(*row) for row in found[:limit]]
    return UnreadablePage(
        records=rows,
        total=total,
        next_cursor=f"{rows[-1].kind}.{rows[-1].key}" if len(found) > limit else None,
        partial=model.partial,
        progress=model.progress,
    )
