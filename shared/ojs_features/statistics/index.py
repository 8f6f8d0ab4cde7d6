"""The table `spans` of the index: what was counted, by queue and minute or hour (docs/adr/018)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ojs_features.statistics.activity import Activity
from ojs_features.statistics.records import HOUR_MS, MINUTE_MS

ALL: Final = ""
"""The queue under which the sums of all queues stand; no queue has this name."""

NUMBERS: Final = tuple(name for name in Activity.__struct_fields__ if name not in {"waits", "runs"})
COLUMNS: Final = ", ".join((*NUMBERS, "waits", "runs"))
"""Of `spans`, in the order of `activity_of`."""

SCHEMA: Final = f"""
CREATE TABLE spans (
    length INTEGER NOT NULL,
    queue TEXT NOT NULL,
    start INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    {", ".join(f"{name} INTEGER NOT NULL" for name in NUMBERS)},
    waits BLOB NOT NULL,
    runs BLOB NOT NULL,
    PRIMARY KEY (length, queue, start)
) WITHOUT ROWID;
CREATE INDEX spans_in_time ON spans (length, start);
CREATE TABLE buried (id TEXT PRIMARY KEY, created_at INTEGER NOT NULL, entries INTEGER NOT NULL, leaves_at INTEGER NOT NULL)
WITHOUT ROWID;
"""
TABLES: Final = ("spans", "buried")

_unpack: Final = msgspec.msgpack.Decoder(dict[int, int]).decode


def activity_of(row: tuple[Any, ...]) -> Activity:
    """Return the activity in a row of `COLUMNS`."""
    activity = Activity(*row[:-2])
    activity.waits, activity.runs = _unpack(row[-2]), _unpack(row[-1])
    return activity


def minutes(db: sqlite3.Connection, queue: str, since: int, until: int) -> Iterator[tuple[int, Activity]]:
    """Read the minutes with activity."""
    return _read(db, MINUTE_MS, queue, since, until)


def hours(db: sqlite3.Connection, queue: str, since: int, until: int) -> Iterator[tuple[int, Activity]]:
    """Read whole hours where their record is complete and lies within, and minutes everywhere else."""
    first = since + -since % HOUR_MS
    last = until - until % HOUR_MS
    rows = db.execute(
        "SELECT start FROM spans WHERE length = ? AND queue = ? AND start >= ? AND start < ? AND closed = 1 ORDER BY start",
        (HOUR_MS, ALL, first, last),
    )
    complete = [start for (start,) in rows]
    known = frozenset(complete)
    yield from (found for found in _read(db, HOUR_MS, queue, first, last) if found[0] in known)
    at = since
    for hour in [*complete, until]:
        if hour > at:
            yield from minutes(db, queue, at, hour)
        at = hour + HOUR_MS


def _read(db: sqlite3.Connection, length: int, queue: str, since: int, until: int) -> Iterator[tuple[int, Activity]]:
    rows = db.execute(
        f"SELECT start, {COLUMNS} FROM spans WHERE length = ? AND queue = ? AND start >= ? AND start < ?",
        (length, queue, since, until),
    )
    for row in rows:
        yield row[0], activity_of(row[1:])
