"""How many jobs there are: of each kind, by what lists begin with, and by queue and by type."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ojs_projector.index.labels import count_labels, dead_label, queue_label, type_label

if TYPE_CHECKING:
    from ojs_projector.index.schema import Row

SCHEMA: Final = """
CREATE TABLE counts (
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    n INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    PRIMARY KEY (queue, type, state, priority)
) WITHOUT ROWID;
CREATE INDEX counts_of_type ON counts (type, state);
CREATE INDEX counts_of_dead ON counts (queue, type, dead) WHERE dead > 0;
CREATE TABLE levels (
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    planned INTEGER NOT NULL,
    n INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    PRIMARY KEY (state, priority, planned)
) WITHOUT ROWID;
"""

# Dead letters are sorted (`+`): in the order of an index each of the jobs would be looked up.
KINDS: Final = (
    "DELETE FROM counts",
    "INSERT INTO counts SELECT queue, type, state, priority, count(*), 0 FROM jobs INDEXED BY kinds GROUP BY 1, 2, 3, 4",
    """
    INSERT INTO counts SELECT queue, type, state, priority, 0, count(*) FROM jobs NOT INDEXED WHERE dead_letter = 1
    GROUP BY +queue, +type, +state, +priority ON CONFLICT DO UPDATE SET dead = excluded.dead
    """,
)
"""Statements that make `counts` from `jobs` and its order `kinds`."""


class _Kind(NamedTuple):
    """The part of a row that is counted."""

    queue: str
    type: str
    state: str
    priority: int
    dead: int
    planned: int


def count(
    db: sqlite3.Connection, rows: Iterable[Row], gone: Iterable[Row], known: Mapping[str, Row], *, kinds: bool = True
) -> None:
    """Follow what becomes of `jobs`: `rows` are written over those that are `known`, `gone` deleted.

    Without `kinds` the numbers of each kind are left to be made later.
    """
    changes: Counter[_Kind] = Counter()
    for row in rows:
        changes[_kind(row)] += 1
        if (before := known.get(row.id)) is not None:
            changes[_kind(before)] -= 1
    for old in gone:
        changes[_kind(old)] -= 1
    numbers = {kind: n for kind, n in changes.items() if n}
    if kinds:
        _count_kinds(db, numbers)
    levels: defaultdict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    labels: Counter[tuple[str, str]] = Counter()
    for kind, n in numbers.items():
        level = levels[kind.state, kind.priority, kind.planned]
        level[0] += n
        level[1] += n * kind.dead
        labels[queue_label(kind.queue), kind.state] += n
        labels[type_label(kind.type), kind.state] += n
        if kind.dead:
            labels[dead_label(kind.queue), kind.state] += n
    db.executemany(
        "INSERT INTO levels VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n, dead = dead + excluded.dead",
        [(*level, *sums) for level, sums in levels.items()],
    )
    count_labels(db, labels)


def _count_kinds(db: sqlite3.Connection, numbers: Mapping[_Kind, int]) -> None:
    db.executemany(
        "INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET n = n + excluded.n, dead = dead + excluded.dead",
        [(*kind[:4], n, n * kind.dead) for kind, n in numbers.items()],
    )
    db.executemany(
        "DELETE FROM counts WHERE queue = ? AND type = ? AND state = ? AND priority = ? AND n = 0",
        [kind[:4] for kind, n in numbers.items() if n < 0],
    )


def _kind(row: Row) -> _Kind:
    return _Kind(row.queue, row.type, row.state, row.priority, row.dead_letter, row.planned)
