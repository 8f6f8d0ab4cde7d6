"""Finding jobs by words of their arguments: the words of each job, and an index of them (FTS5; docs/adr/019).

What is searched is the text of the arguments' first bytes, keys and values alike, without regard to case and accents.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import structlog
from msgspec import Raw

if TYPE_CHECKING:
    from ojs_projector.index.schema import Row

log = structlog.get_logger(__name__)

SCHEMA: Final = """
CREATE TABLE texts (place INTEGER PRIMARY KEY, job_id TEXT NOT NULL, body TEXT NOT NULL);
"""
# Words of `texts.body` come apart at its blanks alone: the tokenizer takes whatever isn't ASCII, and `_`, for letters.
_INDEX: Final = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    body, content = '', detail = none, columnsize = 0, tokenize = "ascii tokenchars '_'"
)
"""
REINDEX: Final = (
    "INSERT INTO words (words) VALUES ('delete-all')",
    "INSERT INTO words (rowid, body) SELECT place, body FROM texts",
)
"""Statements that make the index from `texts`, where there is one."""
_MAX_WORD: Final = 64
"""Longer ones are known by their beginning."""

_split: Final = re.compile(rf"(\w{{1,{_MAX_WORD}}})\w*").findall
_escape: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def can_search(db: sqlite3.Connection) -> bool:
    """Whether this SQLite has what the index needs."""
    try:
        db.execute("CREATE VIRTUAL TABLE temp.probe USING fts5 (body)")
        db.execute("DROP TABLE temp.probe")
    except sqlite3.OperationalError:
        return False
    return True


def words(text: str) -> list[str]:
    """The words of a text, each once: runs of letters, digits and `_`, in small letters without accents."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return list(dict.fromkeys(_split(text.casefold())))


def condition(wanted: Iterable[str]) -> tuple[str, list[str]]:
    """All of these words, as a condition on `texts.body`, and its values."""
    parts = [f" {word} " for word in wanted]
    return " AND ".join("instr(body, ?) > 0" for _ in parts), parts


class Texts:
    """Keeps both in step with `jobs`, within the caller's transactions. `limit` is in bytes; 0 for none at all."""

    def __init__(self, db: sqlite3.Connection, limit: int) -> None:
        self._db = db
        self._limit = limit if limit and can_search(db) else 0
        self._last = 0
        self._new: dict[int, tuple[str, str]] = {}
        if self._limit:
            db.execute(_INDEX)
            self._last = db.execute("SELECT coalesce(max(place), 0) FROM texts").fetchone()[0]
        elif limit:
            log.warning("jobs can't be found by their arguments: this Python's SQLite has no FTS5")

    @property
    def limit(self) -> int:
        """How much of a job's arguments is searched, in bytes; 0 if nothing is."""
        return self._limit

    def begin(self) -> None:
        """Ahead of each transaction: forget what an earlier one has not written."""
        self._new = {}

    def place(self, job_id: str, args: Raw, known: Row | None) -> tuple[int | None, int | None]:
        """The place and mark of a job's arguments. What is new is written by `keep`."""
        if not self._limit:
            return None, None
        begin = bytes(memoryview(args)[: self._limit])
        mark = int.from_bytes(hashlib.blake2b(begin, digest_size=8).digest(), "big", signed=True)
        if known is not None and known.mark == mark:
            return known.place, mark
        found = words(_plain(begin))
        if not found:
            return None, mark
        self._last += 1
        self._new[self._last] = (job_id, f" {' '.join(found)} ")
        return self._last, mark

    def keep(self, rows: Iterable[Row], gone: Iterable[Row], known: Mapping[str, Row], *, indexed: bool) -> None:
        """Write what `place` has found, and drop the arguments of jobs that left or have others now.

        What is not `indexed` is left to be indexed later, together with everything else.
        """
        if not self._limit:
            return
        old = [row.place for row in gone if row.place is not None]
        for row in rows:
            before = known.get(row.id)
            if before is not None and before.place is not None and before.place != row.place:
                old.append(before.place)
        if old:
            places = [(place,) for place in old]
            if indexed:
                self._db.executemany(
                    "INSERT INTO words (words, rowid, body) SELECT 'delete', place, body FROM texts WHERE place = ?", places
                )
            self._db.executemany("DELETE FROM texts WHERE place = ?", places)
        if self._new:
            lines = [(place, job_id, body) for place, (job_id, body) in self._new.items()]
            self._new = {}
            self._db.executemany("INSERT INTO texts VALUES (?, ?, ?)", lines)
            if indexed:
                self._db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", [(line[0], line[2]) for line in lines])

    def forget_all_but(self, rows: Iterable[Row]) -> None:
        """Drop everything but what belongs to these rows."""
        if not self._limit:
            return
        kept = []
        for row in rows:
            if row.place is not None:
                kept += self._db.execute("SELECT place, job_id, body FROM texts WHERE place = ?", (row.place,)).fetchall()
        self._db.execute("DELETE FROM texts")
        self._db.executemany("INSERT INTO texts VALUES (?, ?, ?)", kept)
        for statement in REINDEX:
            self._db.execute(statement)


def _unescaped(digits: str | None) -> str:
    """Halves of pairs stand for signs that are no letters."""
    return chr(int(digits, 16)) if digits and not 0xD800 <= int(digits, 16) < 0xE000 else " "


def _plain(begin: bytes) -> str:
    """JSON's text with its escapes resolved, so that they are no part of words."""
    text = begin.decode(errors="ignore")
    if "\\" not in text:
        return text
    return _escape.sub(lambda found: _unescaped(found[1]), text)
