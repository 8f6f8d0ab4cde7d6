"""The form of a stored message where it is restored: its new name, and the hints that its record needs.

A job that ran is given back without counting the attempt. A consumer of events goes on behind the event that it has got
last. What has ended its time meanwhile isn't written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ojs_engine.base.times import parse_duration_ms
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import QueueRecord, RestoreMark, released, waiting_for_release
from ojs_engine.domain.transitions import Moment
from ojs_engine.domain.transitions.outcome import requeued
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection, header
from ojs_engine.jetstream.headers import time_to_live
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.backup import FeatureBackup, Kept, Restoring
from ojs_engine.store.queues.queues import queue_reader
from ojs_engine.store.records.commit import Committer, CommitTimings, encode_job
from ojs_engine.store.records.records import Records, job_reader
from ojs_engine.store.records.writer import Hint, Writer
from ojs_features.backup.selection import Selection

_SCHEDULE: Final = ("Nats-Schedule", "Nats-Schedule-Target", "Nats-Schedule-Source", "Nats-Schedule-TTL")
_NAMING: Final = frozenset({"Nats-Schedule-Target", "Nats-Schedule-Source"})
"""Headers that name a subject."""

_encode: Final = msgspec.json.Encoder().encode


class Revived(NamedTuple):
    """A message as it is to be stored. `record` says that it is one of the backup, and no hint that was made of it."""

    subject: str
    data: bytes
    headers: str
    record: bool = False


class Standing:
    """A restored system's wait for its release: by the mark of this restore, or by one that it had (unless `lift`)."""

    def __init__(self, moment: Moment, mark: RestoreMark | None, *, lift: bool = False) -> None:
        self._moment = moment
        self.mark = mark
        self._lift = lift
        self.waits = mark is not None

    def of(self, record: QueueRecord | None) -> QueueRecord | None:
        """Return the record that stands for all queues, as it is restored."""
        if self.mark is not None:
            return waiting_for_release(record, self._moment, self.mark)
        if self._lift:
            return released(record, self._moment) or record
        self.waits = record is not None and record.restored is not None
        return record


class Revival:
    """Makes them, for one restore. `counts` says how many of what there were."""

    def __init__(
        self,
        nats: Connection,
        config: StoreConfig,
        source: StoreConfig,
        clock: ServerClock,
        delivered: Mapping[str, int],
        event: Callable[[int], int],
        standing: Standing,
        features: Sequence[FeatureBackup],
    ) -> None:
        """`source` has the names of the backup, `event` says where an event of a sequence is now."""
        lanes = next((feature.lanes for feature in features if feature.lanes is not None), None)
        self._notes = {kind: note for feature in features for kind, note in feature.notes.items()}
        records = Records(nats, nats, config)
        writer = Writer(nats, records, config)
        self._committer = Committer(nats, writer, config, CommitTimings(), lanes)
        self._config = config
        self._source = source
        self._selection = Selection(source, features)
        self._clock = clock
        self._delivered = delivered
        self._event = event
        self._revive = {kind: revive for feature in features for kind, revive in feature.revive.items()}
        self._restoring = Restoring(config, clock.moment, self._behind)
        self._standing = standing
        self.counts: Counter[str] = Counter()

    def of(self, kept: Kept) -> Iterator[Revived]:
        """Return what is stored for a message of the stream of records, in this order; nothing if its time has ended."""
        ttl_s = self._left(kept)
        if ttl_s is not None and ttl_s <= 0:
            self.counts["ended"] += 1
            return
        kind, _, name = self._selection.key(kept.subject)
        headers = self._headers(kept) + time_to_live(ttl_s)
        body, hints = self._made(kind, name, kept)
        self.counts[kind or "hint"] += 1
        for hint in hints:
            self.counts[hint.kind] += 1
            yield Revived(hint.subject, hint.body, hint.headers)
        yield Revived(self.renamed(kept.subject), body, headers, record=True)

    def renamed(self, subject: str) -> str:
        """Return a subject in the namespace that is restored to."""
        there, here = self._source.namespace, self._config.namespace
        for before, after in ((f"$KV.{there}.", f"$KV.{here}."), (f"{there}.", f"{here}.")):
            if subject.startswith(before):
                return after + subject[len(before) :]
        return subject

    def _made(self, kind: str, name: str, kept: Kept) -> tuple[bytes, list[Hint]]:
        """The body, and the hints ahead of it. What can't be read is restored as it is, to be listed where it was."""
        match kind:
            case "job":
                job = self._read(job_reader, name, kept)
                return (kept.data, []) if job is None else self._job(job, kept)
            case "queue" if name == MAINTENANCE:
                record = self._standing.of(self._read(queue_reader, name, kept))
                return kept.data if record is None else _encode(record), []
            case _ if kind in self._notes:
                return kept.data, [self._notes[kind](self._config, name)]
            case _ if kind in self._revive:
                revived = self._revive[kind](name, kept, self._restoring)
                if revived is None:
                    self.counts["unreadable"] += 1
                    return kept.data, []
                self.counts.update(revived.counts)
                return revived.body, list(revived.hints)
            case _:
                return kept.data, []

    def _behind(self, consumer: str, began: int) -> int:
        """Where the event is now behind which a consumer goes on that began at some event."""
        return self._event(max(began, self._delivered.get(consumer, 0)))

    def _job(self, job: Job, kept: Kept) -> tuple[bytes, list[Hint]]:
        if job.deleted:
            return kept.data, []
        self.counts["jobs"] += 1
        if job.terminal:
            return kept.data, []
        if job.state is State.ACTIVE:
            self.counts["requeued"] += 1
            moment = self._clock.moment()
            given_back = requeued(job, moment, reason="restored")
            return encode_job(given_back.job), self._committer.hints(given_back, 0)
        hints = [] if job.timer is None else [self._committer.timer(job.id, job.timer)]
        if job.state is State.AVAILABLE:
            hints.append(self._committer.token(job, 0))
        return kept.data, hints

    def _read(self, reader: RecordReader[Any], name: str, kept: Kept) -> Any:
        found = reader.read(name, kept.sequence, kept.data)
        if found is None:
            self.counts["unreadable"] += 1
        return found

    def _left(self, kept: Kept) -> int | None:
        """Seconds until a message leaves, counted from when it was stored at first; None if it stays."""
        said = header(kept.headers, b"Nats-TTL")
        if not said or said == b"never":
            return None
        text = said.decode()
        ttl_ms = int(text.removesuffix("s")) * 1_000 if text.removesuffix("s").isdigit() else parse_duration_ms(text)
        return -(-(kept.at + ttl_ms - self._clock.now()) // 1_000)

    def _headers(self, kept: Kept) -> str:
        """The headers that stay: those of timers, and those that aren't NATS' own."""
        lines = [line.partition(":") for line in kept.headers.decode(errors="replace").split("\r\n")[1:] if ":" in line]
        told = [(name, value.strip()) for name, _, value in lines]
        is_record = kept.subject.startswith("$KV.")
        stay = [
            (name, self.renamed(value) if name in _NAMING else value)
            for name, value in told
            if not name.lower().startswith("nats-") or (name in _SCHEDULE and not is_record)
        ]
        return "".join(f"{name}: {value}\r\n" for name, value in stay if not name.startswith("KV-"))
