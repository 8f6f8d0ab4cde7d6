"""The read model: what is stored in the bucket, as rows and exact counts, and how far it has come.

Rows, counts and the applied sequence change in one transaction. A revision that is not newer than the row it would
replace is passed over, so any part of the bucket may be read again.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
import structlog
from msgspec import Struct

from ojs_engine.domain.job import Job
from ojs_engine.jetstream.feed import Record
from ojs_engine.jetstream.reading import RECORD_ERRORS, Unreadable
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_index.asking.counting import Counter as JobCounter
from ojs_index.followed import Followed, Table
from ojs_index.sqlite import orders, workers
from ojs_index.sqlite.labels import ROWS, keep_labels, labels_of
from ojs_index.sqlite.numbers import DEAD, RECOUNT, Kind, count, counts_of
from ojs_index.sqlite.orders import Ordering
from ojs_index.sqlite.schema import INSERT, KNOWN, UPDATE, Known, changing, connect, wipe
from ojs_index.sqlite.starts import Start, forget_starts, keep_starts, starts_of
from ojs_index.sqlite.unreadable import forget_unreadable, set_aside
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

_FORGOTTEN: Final = 2_000
_OF_FEATURES: Final = "features"
"""The name under which a file says with which tables of features it is kept."""
_CACHE_KIB: Final = 64_000
_READING: Final = 0.8
"""The part of a rebuild that is reading, about."""
_OF_JOBS: Final = ("job", "gone")
_NOT_TAKEN: Final = (
    *RECORD_ERRORS,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
)
"""Of one record; a broken or full file raises other errors."""
_SAVED_TOGETHER: Final = 20
"""Batches that are written as one, unless whoever reads has nothing to do. What a crash takes back is read again."""


class IndexTimings(Timings, frozen=True, kw_only=True):
    """How long the index waits for changes that it may not hear of."""

    gone_ms: int = 5_000
    """How long after its TTL a record counts as gone though its end was not seen."""
    buried_ms: int = 60_000
    """How much longer than its record it is known what was counted of a deleted job."""
    ahead_ms: int = 60_000
    """By how much the clock that a span was written by may be ahead."""
    order: ClassVar[Order] = (("gone_ms", "buried_ms", "a deleted job would be counted again behind its row"),)


class Seen(Struct, frozen=True):
    """A record with what it is of; None for what is none of these, and for one that can't be read: then `problem` says why."""

    record: Record
    job: Job | None
    held: object = None
    """What a feature's record holds."""
    worker: WorkerRecord | None = None
    problem: str | None = None

    def unreadable(self, problem: str) -> Seen:
        """The same, as a record that can't be read."""
        return Seen(self.record, None, problem=problem)


class _New(NamedTuple):
    """A job that has no row."""

    n: int
    job: Job
    labels: str | None


class _Changes:
    """What becomes of `jobs`: rows that go, that are new, and that stay and change; in the order of the records."""

    def __init__(self, gone: Iterable[Known] = ()) -> None:
        self.gone = list(gone)
        self.new: list[_New] = []
        self.changed: list[tuple[Known, Job]] = []
        self.inserts: list[tuple[Any, ...]] = []
        self.updates: list[tuple[Any, ...]] = []

    @property
    def kinds(self) -> Counter[Kind]:
        """By how much the numbers change."""
        kinds: Counter[Kind] = Counter()
        for _, job, _ in self.new:
            _add(kinds, job.queue, job.type, job.state, job.dead_letter, 1)
        for old, job in self.changed:
            if old.state != job.state or old.dead_letter != job.dead_letter:
                _add(kinds, old.queue, old.type, old.state, old.dead_letter, -1)
                _add(kinds, job.queue, job.type, job.state, job.dead_letter, 1)
        for old in self.gone:
            _add(kinds, old.queue, old.type, old.state, old.dead_letter, -1)
        return kinds


class Model:
    """One replica's index. All methods but `make_orders` are short and block; `applied` is the last sequence it has seen.

    `copied` is how large a job may be whose document is kept, too. `ordering` makes what makes the orders of lists.
    """

    def __init__(
        self,
        path: Path | None,
        copied: int = 0,
        ordering: Callable[[Path], Ordering] = Ordering,
        timings: IndexTimings = IndexTimings(),
        followed: Sequence[Followed] = (),
    ) -> None:
        """`followed` are the records of features."""
        self.timings = timings
        self._tables: dict[str, Table] = {one.reader.kind: one.table for one in followed if one.table is not None}
        """Those of features, by the kind of record."""
        self._ends = [table.ends for table in self._tables.values() if table.ends is not None]
        counted = [one for one in followed if one.counting is not None]
        self._counting = counted[0].counting if counted else None
        self.counted_kind = counted[0].reader.kind if counted else None
        """The kind of records that keep what is counted."""
        self._path = path
        self._make_ordering = ordering
        self._copied = copied
        self._open()
        self._unsaved = 0
        self._broken = True
        """Whether some record may be set aside."""
        self.applied = 0
        self.target = 0
        """Where a rebuild has read everything."""
        self.ordering: Ordering | None = None
        """Makes the orders of lists, which are left out until everything is read; None if they are there."""

    @property
    def db(self) -> sqlite3.Connection:
        """For reading."""
        return self._db

    @property
    def partial(self) -> bool:
        """While it is built anew."""
        return self.ordering is not None or not self.complete

    @property
    def complete(self) -> bool:
        """Whether all that a rebuild has to read is read."""
        return self.applied >= self.target

    @property
    def progress(self) -> float:
        read = 1.0 if self.complete else self.applied / self.target
        if self.ordering is None:
            return read
        return read * _READING + self.ordering.progress * (1 - _READING)

    @property
    def saved(self) -> bool:
        """Whether everything that was taken up is in the file, or its log."""
        return not self._db.in_transaction

    def close(self) -> None:
        """What can't be saved any more is read again the next time. May be called twice."""
        with contextlib.suppress(sqlite3.DatabaseError):
            self.save()
        self._db.close()

    def _open(self) -> None:
        self._db = connect(self._path, self._schema)
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        [last] = self._db.execute("SELECT coalesce(max(n), 0) FROM jobs").fetchone()
        self._numbers = itertools.count(last + 1)
        self.counter = JobCounter()
        """Counts what happens to jobs."""
        if self._counting is not None:
            self.counter = self._counting.make(self._db, self.timings.buried_ms, self.timings.ahead_ms)

    @property
    def _schema(self) -> str:
        """The tables of features, in SQL."""
        of_counts = "" if self._counting is None else self._counting.schema
        return "".join(table.schema for table in self._tables.values()) + of_counts

    @property
    def _settings(self) -> dict[str, str]:
        """Return what a file was made for.

        `searched` is of versions that found jobs by words: a file without them goes on.
        """
        return {"searched": "0", "copied": str(self._copied)}

    def attach(self, stream: str, last_sequence: int) -> None:
        """Go on with what is there if it was read from `stream` (its name and birth), which has come to
        `last_sequence`.

        Otherwise everything is read anew.
        """
        found = dict(self._db.execute("SELECT key, value FROM meta"))
        applied = int(found.get("applied", 0))
        settings = {name: value for name, value in found.items() if name in self._settings}
        is_ours = settings == self._settings and self._is_of_features(found)
        if found.get("stream") == stream and applied <= last_sequence and is_ours:
            self.applied, self.target = applied, int(found.get("target", 0))
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_OF_FEATURES, self._schema))
            if self._path is not None and not orders.are_there(self._db):
                self.ordering = self._make_ordering(self._path)
            return
        if found:
            log.warning("the bucket or what is indexed of it is another than before: everything is read anew")
            self._empty()
        self._begin(stream, last_sequence)

    def _is_of_features(self, found: dict[str, str]) -> bool:
        """Return whether the file has been kept with the tables of these features all the time.

        A table that was left out for a while lacks what was read meanwhile.
        """
        if (kept := found.get(_OF_FEATURES)) is not None:
            return kept == self._schema
        there = {name for [name] in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        of_counts = () if self._counting is None else self._counting.tables
        return there.issuperset({*(table.name for table in self._tables.values()), *of_counts})  # a file of an older version

    def rebuild(self, stream: str, last_sequence: int) -> None:
        """Start from nothing."""
        self._empty()
        self._begin(stream, last_sequence)

    def _empty(self) -> None:
        self._db.close()
        if self._path is not None:
            wipe(self._path)
        self._open()

    def _begin(self, stream: str, last_sequence: int) -> None:
        """Begin with a file that has nothing in it yet."""
        self._broken = False
        self._unsaved = 0
        self.applied, self.target = 0, last_sequence
        self.ordering = None
        if last_sequence and self._path is not None:
            orders.leave_out(self._db)
            self.ordering = self._make_ordering(self._path)
        values = {"stream": stream, "applied": "0", "target": str(last_sequence), _OF_FEATURES: self._schema, **self._settings}
        self._db.executemany("INSERT INTO meta VALUES (?, ?)", values.items())

    def reached_end(self) -> None:
        """Note that there are no more records to be read: the last of the stream were no records, or have left.

        `applied` stays where it is. Should there have been some on their way yet, they are still read.
        """
        self.target = self.applied
        self.save()
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'target'", (str(self.target),))

    async def make_orders(self) -> None:
        """The end of a rebuild, ahead of which nothing is listed. Nothing may be taken up meanwhile.

        Raises sqlite3.DatabaseError.
        """
        if self.ordering is not None:
            await self.ordering.run()
            self.ordering = None

    def apply(self, batch: Sequence[Seen]) -> None:
        """Take up records, in order of their sequence."""
        if not batch:
            return
        with self._transaction():
            start = 0
            for place, seen in enumerate(batch):
                if seen.record.kind == "epoch":
                    self._apply_contained(batch[start:place])
                    self._forget_before(seen.record.sequence)
                    start = place + 1
            self._apply_contained(batch[start:])
            last = max(self.applied, batch[-1].record.sequence)
            self._db.execute("UPDATE meta SET value = ? WHERE key = 'applied'", (str(last),))
        self.applied = last

    def forget(self, now: int) -> int:
        """Drop the rows of records whose TTL is over, and what the statistics no longer need; returns the number of
        rows.

        A follower that was away did not see them leave. While the index is built there is time for that later.
        """
        if self.partial:
            return 0
        before = now - self.timings.gone_ms
        left = self._db.execute(f"SELECT {KNOWN} FROM jobs WHERE leaves_at < ? LIMIT ?", (before, _FORGOTTEN))
        gone = [Known(*row) for row in left]
        with self._transaction():
            self._write(_Changes(gone=gone))
            workers.forget(self._db, before)
            for table in self._tables.values():
                table.forget(self._db, before)
            forget_starts(self._db, now)
            forget_unreadable(self._db, before)
            self.counter.forget(now)
        return len(gone)

    def rows_that_stay(self, until: int) -> int:
        """How many jobs and records of features there are, without those that leave before a time (Unix ms)."""
        jobs = sum(number for state, number in counts_of(self._db).items() if state != DEAD)
        [[leaving]] = self._db.execute("SELECT count(*) FROM jobs WHERE leaves_at < ?", (until,))
        counts = (table.count for table in self._tables.values() if table.count is not None)
        return jobs - int(leaving) + sum(count(self._db, until) for count in counts)

    @property
    def counted(self) -> tuple[str, ...]:
        """The kinds of records that `rows_that_stay` counts."""
        return ("job", *(kind for kind, table in self._tables.items() if table.count is not None))

    def _apply_contained(self, batch: Sequence[Seen]) -> None:
        """Take up records; one that the index can't take is set aside, and does not take the others of its batch along."""
        try:
            self._attempt(batch)
        except _NOT_TAKEN as error:
            if len(batch) == 1:
                problem = f"the index can't take it: {error}"
                Unreadable(batch[0].record.kind, batch[0].record.job_id, problem).note(batch[0].record.sequence)
                self._attempt([batch[0].unreadable(problem)])
            else:
                middle = len(batch) // 2
                self._apply_contained(batch[:middle])
                self._apply_contained(batch[middle:])

    def _attempt(self, batch: Sequence[Seen]) -> None:
        """All of a batch, or nothing of it. Raises whatever is wrong with one of its records."""
        self._db.execute("SAVEPOINT attempt")
        try:
            self._apply_records(batch)
        except BaseException:
            with contextlib.suppress(sqlite3.DatabaseError):  # a disk that is full has ended the transaction as a whole
                self._db.execute("ROLLBACK TO attempt")
                self._db.execute("RELEASE attempt")
            self.counter.drop()
            raise
        self._db.execute("RELEASE attempt")

    def _apply_records(self, batch: Sequence[Seen]) -> None:
        self._apply_jobs(batch)
        self._broken = set_aside(self._db, batch, known=self._broken)
        for kind, table in self._tables.items():
            table.apply(self._db, ((seen.record, seen.held) for seen in batch if seen.record.kind == kind))
        workers.apply(self._db, [seen for seen in batch if seen.record.kind == "worker"])
        for ends in self._ends:
            ended = (seen for seen in batch if seen.job is not None and ends.asks(seen.job) and seen.job.terminal)
            ends.note(self._db, ((seen.record.job_id, seen.record.at) for seen in ended))
        for seen in batch:
            if seen.held is not None and seen.record.kind == self.counted_kind:
                self.counter.take(seen.record, seen.held)

    def _apply_jobs(self, batch: Sequence[Seen]) -> None:
        newest: dict[str, Seen] = {}
        for seen in batch:
            # One that can't be read is no job that anybody could be shown.
            if seen.record.kind in _OF_JOBS:
                newest[seen.record.job_id] = seen
        if not newest:
            return
        known = self._known(newest)
        changes = _Changes()
        starts: list[Start] = []
        for job_id, seen in newest.items():
            record, job = seen.record, seen.job
            old = known.get(job_id)
            if old is not None and old.seq >= record.sequence:
                continue
            if job is not None:
                self.counter.count(job, None if old is None else (old.created_at, old.entries), record)
            if job is None or job.deleted:
                if old is not None:
                    changes.gone.append(old)
                continue
            if job.attempt and (old is None or old.attempt != job.attempt or old.started_at != job.started_at):
                starts += starts_of(job, _started_by(old))
            labels = labels_of(job)
            lasting = (job.type, job.queue, job.priority, job.created_at, job.scheduled_at, labels)
            values = changing(job, record, self._copied)
            if old is not None and old.lasting == lasting:
                changes.changed.append((old, job))
                changes.updates.append((*values, old.n))
                continue
            if old is not None:
                changes.gone.append(old)
            n = next(self._numbers)
            changes.new.append(_New(n, job, labels))
            changes.inserts.append((*values, n, job_id, *lasting))
        self._write(changes)
        if starts:
            keep_starts(self._db, starts)
        self.counter.flush()

    def _known(self, job_ids: Iterable[str]) -> dict[str, Known]:
        wanted = msgspec.json.encode(list(job_ids)).decode()
        found = self._db.execute(f"SELECT {KNOWN} FROM jobs WHERE id IN (SELECT value FROM json_each(?))", (wanted,))
        return {row[1]: Known(*row) for row in found}

    def _write(self, changes: _Changes) -> None:
        """Change the rows, and what follows from them."""
        db = self._db
        gone, new = changes.gone, changes.new
        db.executemany("DELETE FROM jobs WHERE n = ?", [(old.n,) for old in gone])
        db.executemany(UPDATE, changes.updates)
        db.executemany(INSERT, changes.inserts)
        if self.ordering is None:
            keep_labels(
                db,
                ((n, job.created_at, labels) for n, job, labels in new),
                ((old.n, old.created_at, old.labels) for old in gone),
            )
        count(db, changes.kinds)
        since: dict[str, int] = {}
        for _, job, _ in new:
            since[job.queue] = min(since.get(job.queue, job.created_at), job.created_at)
        db.executemany(
            "INSERT INTO queues VALUES (?, ?) ON CONFLICT DO UPDATE SET created_at = excluded.created_at "
            "WHERE excluded.created_at < created_at",
            since.items(),
        )

    def _forget_before(self, sequence: int) -> None:
        """Everything of a lower sequence was wiped by a reset."""
        db = self._db
        # All rows at once leave much faster than one by one.
        stayed = db.execute("SELECT * FROM jobs WHERE seq >= ?", (sequence,)).fetchall()
        for table in ("jobs", "labels", "queues", "starts"):
            db.execute(f"DELETE FROM {table}")
        for table in ("workers", "unreadable", *(one.name for one in self._tables.values())):
            db.execute(f"DELETE FROM {table} WHERE seq < ?", (sequence,))
        if stayed:
            db.executemany(f"INSERT INTO jobs VALUES ({', '.join('?' * len(stayed[0]))})", stayed)
        db.execute("INSERT INTO queues SELECT queue, min(created_at) FROM jobs GROUP BY 1")
        if self.ordering is None:
            db.execute(ROWS)
        for statement in RECOUNT:
            db.execute(statement)
        if sequence > self.applied:  # not when it is read once more
            self.counter.wipe(sequence)

    def save(self) -> None:
        """Write what was taken up since the last time: for whoever has nothing else to do, else it is done for many batches."""
        try:
            if self._db.in_transaction:
                self._db.execute("COMMIT")
        except sqlite3.DatabaseError:
            self._take_back()
            raise
        self._unsaved = 0

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing. Many of them share one write to the disk."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("SAVEPOINT batch")
        try:
            yield
            self._db.execute("RELEASE batch")
        except BaseException:
            self._take_back()
            raise
        self._unsaved += 1
        if self._unsaved >= _SAVED_TOGETHER:
            self.save()

    def _take_back(self) -> None:
        """Undo a batch that failed. Where the disk is full that costs all that was not saved."""
        with contextlib.suppress(sqlite3.DatabaseError):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK TO batch")
                self._db.execute("COMMIT")
        with contextlib.suppress(sqlite3.DatabaseError):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        self._unsaved = 0
        self.counter.drop()
        found = self._db.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()
        self.applied = int(found[0]) if found is not None else 0


def _add(kinds: Counter[Kind], queue: str, job_type: str, state: str, dead_letter: int, change: int) -> None:
    kinds[queue, job_type, state] += change
    if dead_letter:
        kinds[queue, job_type, DEAD] += change


def _started_by(row: Known | None) -> int:
    """Whatever started until then is counted: what is available now started before it became so."""
    return 0 if row is None else max(row.started_at or 0, (row.enqueued_at or 1) - 1)
