"""Small jobs as they are stored, so that a page of them needs no reads all over the bucket (docs/adr/025)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

# By the sequence of their revision: what is new stands at the end, and so what changes often is close together.
SCHEMA: Final = "CREATE TABLE documents (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);\n"


def keep_documents(db: sqlite3.Connection, stored: Iterable[tuple[int, bytes]]) -> None:
    """Revisions by their sequence."""
    db.executemany("INSERT INTO documents VALUES (?, ?)", stored)


def drop_documents(db: sqlite3.Connection, sequences: Iterable[int]) -> None:
    """Of revisions that are no job's last one any more."""
    db.executemany("DELETE FROM documents WHERE seq = ?", [(sequence,) for sequence in sequences])


def documents_of(db: sqlite3.Connection, sequences: Iterable[int]) -> dict[int, bytes]:
    """Those that are kept."""
    wanted = list(sequences)
    marks = ",".join("?" * len(wanted))
    return dict(db.execute(f"SELECT seq, body FROM documents WHERE seq IN ({marks})", wanted))
