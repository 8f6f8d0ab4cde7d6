"""How many jobs there are, by queue, type and state. What is shown of queues, types and all together are sums of few rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

ALL: Final = ""
"""The queue under which the sums of all queues stand; no queue has this name."""
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
CREATE INDEX counts_of_dead ON counts (queue) WHERE state = '{DEAD}';
"""

RECOUNT: Final = (
    "DELETE FROM counts",
    "INSERT INTO counts SELECT queue, type, state, count(*) FROM jobs GROUP BY 1, 2, 3",
    f"INSERT INTO counts SELECT queue, type, '{DEAD}', count(*) FROM jobs WHERE dead_letter = 1 GROUP BY +queue, +type",
    f"INSERT INTO counts SELECT '{ALL}', type, state, sum(n) FROM counts GROUP BY 2, 3",
)
"""Statements that make `counts` from `jobs`."""


Kind = tuple[str, str, str]
"""A queue, a type and a state: what is counted of a job."""


def count(db: sqlite3.Connection, changes: Mapping[Kind, int]) -> None:
    """Add to the numbers of some kinds, and to the sums of which they are part."""
    found: dict[Kind, int] = {}
    for kind, change in changes.items():
        if change:
            queue, job_type, state = kind
            found[queue, job_type, state] = change
            found[ALL, job_type, state] = found.get((ALL, job_type, state), 0) + change
    db.executemany(
        "INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
        [(*key, change) for key, change in found.items() if change],
    )
    db.executemany(
        "DELETE FROM counts WHERE queue = ? AND type = ? AND state = ? AND n = 0",
        [key for key, change in found.items() if change < 0],
    )


def counts_of(db: sqlite3.Connection, queue: str | None = None) -> dict[str, int]:
    """Jobs of a queue, or of all, by state; dead letters under `DEAD`, too."""
    return dict(db.execute("SELECT state, sum(n) FROM counts WHERE queue = ? GROUP BY state", (queue or ALL,)))


def counts_of_queues(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Jobs by queue and state."""
    found = db.execute("SELECT queue, state, sum(n) FROM counts WHERE queue > ? AND state <> ? GROUP BY 1, 2", (ALL, DEAD))
    return {(queue, state): n for queue, state, n in found}


def dead_of_queues(db: sqlite3.Connection) -> dict[str, int]:
    """Dead letters by queue."""
    source = "counts INDEXED BY counts_of_dead"
    return dict(db.execute(f"SELECT queue, sum(n) FROM {source} WHERE state = '{DEAD}' AND queue > ? GROUP BY 1", (ALL,)))


def dead_of_types(db: sqlite3.Connection, queue: str | None) -> dict[str, int]:
    """Dead letters of a queue, or of all, by type."""
    source = "counts INDEXED BY counts_of_dead"
    return dict(db.execute(f"SELECT type, n FROM {source} WHERE state = '{DEAD}' AND queue = ?", (queue or ALL,)))
