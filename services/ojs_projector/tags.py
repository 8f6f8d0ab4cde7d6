"""Which jobs have a tag: a row for each, in the order of lists."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from ojs_projector.schema import Row

__all__ = ["SCHEMA", "keep_tags", "recount_tags", "tags_of"]

SCHEMA: Final = """
CREATE TABLE tags (
    tag TEXT NOT NULL,
    at INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (tag, at, job_id)
) WITHOUT ROWID;
"""

_decode: Final = msgspec.json.Decoder(tuple[str, ...]).decode


def tags_of(row: Row) -> tuple[str, ...]:
    return _decode(row.tags) if row.tags else ()


def keep_tags(db: sqlite3.Connection, rows: Iterable[Row], gone: Iterable[Row], known: Mapping[str, Row]) -> None:
    """Follow what becomes of `jobs`: `rows` are written over those that are `known`, `gone` deleted."""
    old = list(gone)
    new = []
    for row in rows:
        before = known.get(row.id)
        if before is None or (before.tags, before.created_at) != (row.tags, row.created_at):
            new.append(row)
            if before is not None:
                old.append(before)
    db.executemany("DELETE FROM tags WHERE tag = ? AND at = ? AND job_id = ?", _lines(old))
    db.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", _lines(new))


def recount_tags(db: sqlite3.Connection) -> None:
    """Make the table anew from `jobs`."""
    db.execute("DELETE FROM tags")
    db.execute(
        "INSERT OR IGNORE INTO tags SELECT each.value, created_at, jobs.id "
        "FROM jobs, json_each(CAST(jobs.tags AS TEXT)) AS each WHERE jobs.tags IS NOT NULL"
    )


def _lines(rows: Iterable[Row]) -> list[tuple[str, int, str]]:
    return [(tag, row.created_at, row.id) for row in rows if row.tags for tag in tags_of(row)]
