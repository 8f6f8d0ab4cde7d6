"""Which jobs were handed out when, summed up for each second (ojs-fair-scheduling §10.2)."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from ojs_engine.domain.job import Job
from ojs_engine.domain.past import Logged

SCHEMA: Final = """
CREATE TABLE starts (
    queue TEXT NOT NULL,
    second INTEGER NOT NULL,
    number INTEGER NOT NULL,
    wait_ms INTEGER NOT NULL,
    PRIMARY KEY (queue, second)
) WITHOUT ROWID;
"""
SECOND_MS: Final = 1_000
WINDOW_S: Final = 60


class Start(NamedTuple):
    """One job that was handed out at `at` (Unix ms), after it had been available for `wait_ms`."""

    queue: str
    at: int
    wait_ms: int


def starts_of(job: Job, after: int) -> list[Start]:
    """Return the times a job was handed out later than `after`, as far as its log goes back; the last one first."""
    found: list[Start] = []
    for entry in reversed(job.transitions):
        if entry.event == "claimed":
            if entry.at <= after:
                break
            since = Logged.of(job, entry).available_at
            found.append(Start(job.queue, entry.at, 0 if since is None else max(0, entry.at - since)))
    return found


def keep_starts(db: sqlite3.Connection, news: Iterable[Start]) -> None:
    """Add to the sums of their seconds, inside the caller's transaction."""
    sums: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for one in news:
        second = sums[one.queue, one.at // SECOND_MS]
        second[0] += 1
        second[1] += one.wait_ms
    db.executemany(
        "INSERT INTO starts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "number = number + excluded.number, wait_ms = wait_ms + excluded.wait_ms",
        [(queue, second, *numbers) for (queue, second), numbers in sums.items()],
    )


def forget_starts(db: sqlite3.Connection, now: int) -> None:
    """Drop what is older than the window, except the last of each queue."""
    db.execute(
        "DELETE FROM starts WHERE second < ? AND second < (SELECT max(second) FROM starts AS others "
        "WHERE others.queue = starts.queue)",
        (now // SECOND_MS - WINDOW_S,),
    )
