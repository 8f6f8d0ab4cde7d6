"""Finding jobs by words of their arguments, where that is asked for: an index of them (FTS5; docs/adr/039).

What is searched is the text of the arguments' first bytes, keys and values alike, without regard to case and accents.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import structlog
from msgspec import Raw

log = structlog.get_logger(__name__)

# Words of a body come apart at its blanks alone: the tokenizer takes whatever isn't ASCII, and `_`, for letters.
_INDEX: Final = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (body, detail = none, columnsize = 0, tokenize = "ascii tokenchars '_'")
"""
_MAX_WORD: Final = 64
"""Longer ones are known by their beginning."""

_split: Final = re.compile(rf"(\w{{1,{_MAX_WORD}}})\w*").findall
_escape: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)

Text = tuple[int, Raw]
"""A job's number and its arguments."""


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


class Texts:
    """Keeps the index in step with `jobs`, within the caller's transactions. `limit` is in bytes; 0 for none at all."""

    def __init__(self, db: sqlite3.Connection, limit: int, able: Callable[[sqlite3.Connection], bool] = can_search) -> None:
        """`able` says whether this SQLite has what the index needs; it is for tests."""
        self._db = db
        self.limit = limit if limit and able(db) else 0
        """How much of a job's arguments is searched, in bytes; 0 if nothing is."""
        if self.limit:
            db.execute(_INDEX)
        elif limit:
            log.warning("jobs can't be found by their arguments: this Python's SQLite has no FTS5")

    def keep(self, come: Iterable[Text], changed: Iterable[Text], gone: Iterable[int]) -> None:
        """Follow jobs that come, change and leave."""
        if not self.limit:
            return
        new = {n: self._body(args) for n, args in come}
        now = {n: self._body(args) for n, args in changed}
        numbers = msgspec.json.encode(list(now)).decode()
        before = dict(
            self._db.execute("SELECT rowid, body FROM words WHERE rowid IN (SELECT value FROM json_each(?))", (numbers,))
        )
        other = {n: body for n, body in now.items() if before.get(n) != body}
        self._db.executemany("DELETE FROM words WHERE rowid = ?", [(n,) for n in (*gone, *other)])
        self._db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", [*new.items(), *other.items()])

    def forget_all_but_jobs(self) -> None:
        """Drop what belongs to no row of `jobs`."""
        if self.limit:
            self._db.execute("DELETE FROM words WHERE rowid NOT IN (SELECT n FROM jobs)")

    def _body(self, args: Raw) -> str:
        return f" {' '.join(words(_plain(bytes(memoryview(args)[: self.limit]))))} "


def _unescaped(digits: str | None) -> str:
    """Halves of pairs stand for signs that are no letters."""
    return chr(int(digits, 16)) if digits and not 0xD800 <= int(digits, 16) < 0xE000 else " "


def _plain(begin: bytes) -> str:
    """JSON's text with its escapes resolved, so that they are no part of words."""
    text = begin.decode(errors="ignore")
    if "\\" not in text:
        return text
    return _escape.sub(lambda found: _unescaped(found[1]), text)
