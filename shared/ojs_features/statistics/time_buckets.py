"""Statistics over time in the read model: minutes and hours by queue, counted once each (docs/adr/018).

Minutes that no record keeps yet are counted here, from the logs of jobs. A record of a minute or an hour replaces
what was counted, and closes it: whatever an older log says of a closed minute is in its record already.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ojs_engine.domain.job import Job
from ojs_engine.domain.past import birth_of
from ojs_engine.jetstream.feed import Record
from ojs_engine.jetstream.reading import RecordReader
from ojs_features.statistics import recent
from ojs_features.statistics.activity import Activity, count
from ojs_features.statistics.index import ALL, COLUMNS, NUMBERS, activity_of, hours, minutes
from ojs_features.statistics.records import HOUR_MS, KEPT_MS, MINUTE_MS, Span
from ojs_index.asking.counting import Counter, Recent
from ojs_index.followed import Index

_MARKS: Final = ", ".join("?" * (4 + len(NUMBERS) + 2))
_CACHED: Final = 2_000

_pack: Final = msgspec.msgpack.Encoder().encode
_unnamed_reader: Final = RecordReader("stats", msgspec.json.Decoder(Span).decode)

_Key = tuple[str, int]
"""A queue and the start of a minute (Unix ms)."""


class TimeBuckets(Counter):
    """A counter by minutes and hours, inside the transactions of the index."""

    def __init__(self, db: sqlite3.Connection, buried_ms: int, ahead_ms: int) -> None:
        self._db = db
        self._buried_ms = buried_ms
        self._ahead_ms = ahead_ms
        self._rows: dict[_Key, Activity] = {}
        """Open minutes as they are stored, to save reading them."""
        self._fresh: dict[_Key, Activity] = {}
        self._stored_at = 0
        self._instance = ""
        self._caught_up = 0
        self._closing = 0
        self._closing_at = 0
        """How far this replica had read when it last closed something."""
        self._floor = 0
        """Nothing is counted of what happened before (Unix ms)."""
        found = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('closed', 'closed_by')"))
        self.closed = int(found.get("closed", 0))
        """The end of the last minute that a record keeps (Unix ms)."""
        self._closed_by = int(found.get("closed_by", 0))
        """From this sequence on, what is new is not in that record: its own, or how far we had read when we wrote it."""

    def begin(self, now: int, last: Record | None, instance: str) -> None:
        """Begin to follow. `instance` is this replica's name, `last` the latest record of a span, None if there may be
        none.

        What it says is closed need not be counted only to be replaced. Without one, no more than a day is counted.
        """
        self._instance = instance
        span = _unnamed_reader.read(last.job_id, last.sequence, last.data) if last is not None and last.data else None
        if span is not None and last is not None and self.closed < span.start + span.length <= now and not span.part:
            self.closed, self._closed_by = span.start + span.length, last.sequence
        self._floor = 0 if self.closed else now - KEPT_MS[MINUTE_MS]

    # Counting

    def count(self, job: Job, known: tuple[int, int] | None, record: Record) -> None:
        """Count what is new in a job's log; `known` is its `created_at` and last entry as they were counted before."""
        log = job.transitions
        if not log:
            return
        if known is None and (job.deleted or log[0].n > 1 or birth_of(log) > 1):
            known = self._db.execute("SELECT created_at, entries FROM buried WHERE id = ?", (job.id,)).fetchone()
        after = 0
        if known is not None and (known[0] == job.created_at or known[1] < birth_of(log)):
            after = known[1]
        if log[-1].n > after:
            self._stored_at = record.at
            count(job, after, self._pick)
        if job.deleted:
            leaves_at = record.at + (record.ttl_s or 0) * 1_000 + self._buried_ms
            self._db.execute(
                "INSERT OR REPLACE INTO buried VALUES (?, ?, ?, ?)", (job.id, job.created_at, log[-1].n, leaves_at)
            )

    def _pick(self, queue: str, at: int) -> Activity | None:
        start = at - at % MINUTE_MS
        closed = max(self.closed, self._closing)
        if start < closed:
            # Counted in the record, unless it was stored after the record: then it counts where it was stored.
            if self._caught_up < self._closed_by or self._stored_at < closed:
                return None
            start = self._stored_at - self._stored_at % MINUTE_MS
        elif start < self._floor:
            return None
        activity = self._fresh.get((queue, start))
        if activity is None:
            activity = self._fresh[queue, start] = Activity()
        return activity

    def flush(self) -> None:
        """Write what was counted since the last time."""
        if not self._fresh:
            return
        if len(self._rows) > _CACHED:
            self._rows.clear()
        changed: dict[_Key, Activity] = {}
        for (queue, start), activity in self._fresh.items():
            for name in (queue, ALL):
                row = changed[name, start] = self._row(name, start)
                row.add(activity)
        self._fresh.clear()
        self._write(MINUTE_MS, ((queue, start, activity) for (queue, start), activity in changed.items()), closed=False)

    def drop(self) -> None:
        """A transaction was taken back: what is stored is read again."""
        self._rows.clear()
        self._fresh.clear()

    def _row(self, queue: str, start: int) -> Activity:
        row = self._rows.get((queue, start))
        if row is None:
            found = self._db.execute(
                f"SELECT {COLUMNS} FROM spans WHERE length = ? AND queue = ? AND start = ?", (MINUTE_MS, queue, start)
            ).fetchone()
            row = self._rows[queue, start] = activity_of(found) if found is not None else Activity()
        return row

    def _write(self, length: int, found: Iterable[tuple[str, int, Activity]], *, closed: bool) -> None:
        self._db.executemany(
            f"INSERT OR REPLACE INTO spans VALUES ({_MARKS})",
            [
                (
                    length,
                    queue,
                    start,
                    int(closed),
                    *(getattr(activity, name) for name in NUMBERS),
                    _pack(activity.waits),
                    _pack(activity.runs),
                )
                for queue, start, activity in found
            ],
        )

    # Closing

    def take(self, record: Record, span: Span) -> None:
        """Take up the record of a span. Raises ValueError if the span was not over."""
        self.flush()
        if span.start + span.length > record.at + self._ahead_ms:
            raise ValueError("it keeps a span that was not over")
        self._write(span.length, ((name, span.start, activity) for name, activity in span.queues.items()), closed=True)
        if span.part:
            return
        end = span.start + span.length
        db = self._db
        db.execute(
            "DELETE FROM spans WHERE length = ? AND start = ? AND (closed = 0 OR queue = ?)", (span.length, span.start, ALL)
        )
        total = Activity()
        if span.parts > 1:
            rows = db.execute(f"SELECT {COLUMNS} FROM spans WHERE length = ? AND start = ?", (span.length, span.start))
            for row in rows:
                total.add(activity_of(row))
        else:
            for activity in span.queues.values():
                total.add(activity)
        self._write(span.length, [(ALL, span.start, total)], closed=True)
        if span.length == HOUR_MS:
            db.execute(
                "UPDATE spans SET closed = 1 WHERE length = ? AND start >= ? AND start < ?", (MINUTE_MS, span.start, end)
            )
        self._rows.clear()
        if end > self.closed:
            mine = span.by == self._instance and end <= self._closing
            self.closed, self._closed_by = end, self._closing_at if mine else record.sequence
            db.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", [("closed", str(end)), ("closed_by", str(self._closed_by))]
            )

    def caught_up(self, sequence: int) -> None:
        """Everything that is stored up to `sequence` has been seen, in the revision in which it was then or a later one."""
        self._caught_up = sequence

    def open_minutes(self, before: int) -> list[int]:
        """Starts of minutes with activity that end by `before` (Unix ms) and that no record keeps, the oldest first."""
        found = self._db.execute(
            "SELECT start FROM spans WHERE length = ? AND queue = ? AND start <= ? AND closed = 0 ORDER BY start",
            (MINUTE_MS, ALL, before - MINUTE_MS),
        )
        return [start for (start,) in found]

    def open_hours(self, before: int) -> list[int]:
        """Starts of hours with activity that end by `before` and that no record keeps, the oldest first."""
        found = self._db.execute(
            "SELECT DISTINCT start - start % ?1 FROM spans WHERE length = ?2 AND queue = ?3 AND start < ?4 - ?4 % ?1 "
            "EXCEPT SELECT start FROM spans WHERE length = ?1 AND queue = ?3 AND closed = 1 ORDER BY 1",
            (HOUR_MS, MINUTE_MS, ALL, before),
        )
        return [start for (start,) in found]

    def minute(self, start: int) -> dict[str, Activity]:
        """All queues of a minute."""
        rows = self._db.execute(
            f"SELECT queue, {COLUMNS} FROM spans WHERE length = ? AND start = ? AND queue != ?", (MINUTE_MS, start, ALL)
        )
        return {row[0]: activity_of(row[1:]) for row in rows}

    def settled(self, start: int, end: int) -> bool:
        """Whether records keep all minutes with activity from `start` to `end`."""
        found = self._db.execute(
            "SELECT 1 FROM spans WHERE length = ? AND queue = ? AND start >= ? AND start < ? AND closed = 0 LIMIT 1",
            (MINUTE_MS, ALL, start, end),
        )
        return found.fetchone() is None

    def close(self, until: int) -> None:
        """Count nothing more in what ends by `until`: records are about to keep it."""
        self._closing, self._closing_at = max(self._closing, until), self._caught_up

    def queues_within(self, start: int, end: int) -> list[str]:
        """The queues with activity in the minutes from `start` to `end`."""
        found = self._db.execute(
            "SELECT DISTINCT queue FROM spans WHERE length = ? AND start >= ? AND start < ? AND queue != ?",
            (MINUTE_MS, start, end, ALL),
        )
        return [queue for (queue,) in found]

    def within(self, queue: str, start: int, end: int) -> Activity:
        """Return what happened in a queue in the minutes from `start` to `end`."""
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM spans WHERE length = ? AND queue = ? AND start >= ? AND start < ?",
            (MINUTE_MS, queue, start, end),
        )
        total = Activity()
        for row in rows:
            total.add(activity_of(row))
        return total

    def minutes(self, queue: str | None, since: int, until: int) -> Iterator[tuple[int, Activity]]:
        """Yield the starts of minutes with activity, of a queue or of all, each with it."""
        return minutes(self._db, queue or ALL, since, until)

    def hours(self, queue: str | None, since: int, until: int) -> Iterator[tuple[int, Activity]]:
        """Yield the same of hours that are closed, and of minutes everywhere else."""
        return hours(self._db, queue or ALL, since, until)

    def recent(self, queue: str | None, now: int, windows: Sequence[str]) -> Recent:
        """Return what happened lately in a queue, or in all."""
        return recent.recent(self._db, queue, now, windows)

    def ended(self, now: int) -> dict[str, tuple[int, int]]:
        """Return the completed and failed attempts of the last five minutes, by queue."""
        return recent.ended(self._db, now)

    def backlog(self, queue: str, now_there: int, now: int) -> tuple[int, ...]:
        """Return how many jobs of a queue had not ended in the last hour."""
        return recent.backlog(self._db, queue, now_there, now)

    # Housekeeping

    def forget(self, now: int) -> None:
        """Drop what is too old. Minutes stay until their hour is kept."""
        db = self._db
        db.execute("DELETE FROM spans WHERE length = ? AND start < ?", (HOUR_MS, now - KEPT_MS[HOUR_MS]))
        db.execute("DELETE FROM spans WHERE length = ? AND start < ?", (MINUTE_MS, now - KEPT_MS[HOUR_MS]))
        db.execute(
            "DELETE FROM spans WHERE length = ?1 AND start < ?2 AND EXISTS (SELECT 1 FROM spans AS hours "
            "WHERE hours.length = ?3 AND hours.queue = ?4 AND hours.closed = 1 "
            "AND hours.start = spans.start - spans.start % ?3)",
            (MINUTE_MS, now - KEPT_MS[MINUTE_MS] - HOUR_MS, HOUR_MS, ALL),
        )
        db.execute("DELETE FROM buried WHERE leaves_at < ?", (now,))
        self._rows.clear()

    def wipe(self, sequence: int) -> None:
        """Everything was reset; `sequence` is that of the epoch."""
        self.drop()
        self.closed, self._closed_by, self._closing = 0, sequence, 0
        for table in ("spans", "buried"):
            self._db.execute(f"DELETE FROM {table}")
        self._db.execute("DELETE FROM meta WHERE key IN ('closed', 'closed_by')")


def buckets_of(index: Index) -> TimeBuckets:
    """Return what an index counts."""
    counter = index.counter
    if not isinstance(counter, TimeBuckets):
        raise TypeError("another feature counts")
    return counter
