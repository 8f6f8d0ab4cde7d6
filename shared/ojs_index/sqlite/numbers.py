"""How many jobs there are, by queue, type and state, and the sums that are shown."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import Final

ALL: Final = ""
"""The queue or type under which the sum of all of them stands; none has this name."""
DEAD: Final = "dead"
"""Beside the states: dead letters are counted once more under this."""

SCHEMA: Final = f"""
CREATE TABLE counts (
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (queue, type, state)
) WITHOUT ROWID;
CREATE INDEX counts_of_queues ON counts (queue) WHERE type = '{ALL}';
CREATE INDEX counts_of_dead ON counts (queue) WHERE state = '{DEAD}';
"""

RECOUNT: Final = (
    "DELETE FROM counts",
    "INSERT INTO counts SELECT queue, type, state, count(*) FROM jobs GROUP BY 1, 2, 3",
    f"INSERT INTO counts SELECT queue, type, '{DEAD}', count(*) FROM jobs WHERE dead_letter = 1 GROUP BY +queue, +type",
    f"INSERT INTO counts SELECT '{ALL}', type, state, sum(n) FROM counts GROUP BY 2, 3",
    f"INSERT INTO counts SELECT queue, '{ALL}', state, sum(n) FROM counts GROUP BY 1, 3",
)
"""Statements that make `counts` from `jobs`."""


Kind = tuple[str, str, str]
"""A queue, a type and a state: what is counted of a job."""


def count(db: sqlite3.Connection, changes: Mapping[Kind, int]) -> None:
    """Add to the numbers of some kinds, and to the sums of which they are part."""
    found: Counter[Kind] = Counter()
    for (queue, job_type, state), change in changes.items():
        if change:
            for kind in ((queue, job_type, state), (ALL, job_type, state), (queue, ALL, state), (ALL, ALL, state)):
                found[kind] += change
    db.executemany(
        "INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
        [(*kind, change) for kind, change in found.items() if change],
    )
    db.executemany(
        "DELETE FROM counts WHERE queue = ? AND type = ? AND state = ? AND n = 0",
        [kind for kind, change in found.items() if change < 0],
    )


def counts_of(db: sqlite3.Connection, queue: str | None = None) -> dict[str, int]:
    """Jobs of a queue, or of all, by state; dead letters under `DEAD`, too."""
    return dict(db.execute("SELECT state, n FROM counts WHERE queue = ? AND type = ?", (queue or ALL, ALL)))


def counts_of_queues(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Jobs by queue and state; dead letters under `DEAD`, too."""
    source = "counts INDEXED BY counts_of_queues"
    found = db.execute(f"SELECT queue, state, n FROM {source} WHERE type = '{ALL}' AND queue > ?", (ALL,))
    return {(queue, state): n for queue, state, n in found}


def dead_of_queues(db: sqlite3.Connection) -> dict[str, int]:
    """Dead letters by queue."""
    source = "counts INDEXED BY counts_of_dead"
    found = db.execute(f"SELECT queue, n FROM {source} WHERE state = '{DEAD}' AND queue > ? AND type = ?", (ALL, ALL))
    return dict(found)


def dead_of_types(db: sqlite3.Connection, queue: str | None) -> dict[str, int]:
    """Dead letters of a queue, or of all, by type."""
    source = "counts INDEXED BY counts_of_dead"
    of_queue = f"SELECT type, n FROM {source} WHERE state = '{DEAD}' AND queue = ? AND type > ?"
    return dict(db.execute(of_queue, (queue or ALL, ALL)))
