"""The release of a restored system: from then on it hands out jobs, and its features act (docs/adr/085)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct

from ojs_engine.domain.queues.config import DEFAULT_QUEUE, MAINTENANCE
from ojs_engine.domain.queues.record import QueueRecord, RestoreMark, released
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.contents import count, subjects_of
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.streams import is_restoring
from ojs_engine.jetstream.subjects import ANY, REST, StoreConfig
from ojs_engine.jetstream.watch import Watches, WatchTimings
from ojs_engine.store.backup import BackupProblem, FeatureBackup
from ojs_engine.store.queues.queues import Queues, queue_reader
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.commit import Committer, CommitTimings
from ojs_engine.store.records.records import Records
from ojs_engine.store.records.writer import Writer

T = TypeVar("T")

_QUEUE_TOKEN: Final = 2
"""The place of a queue in the subject of a token."""


class Held(Struct, frozen=True, kw_only=True):
    """Counts of what begins to act when a system is released. What was paused before the backup isn't among them."""

    mark: RestoreMark
    features: dict[str, int]
    """Counts of features, by their names."""
    queues: int
    """Queues with jobs that wait."""
    jobs: int
    """Jobs that wait in them."""
    due: int
    """Jobs whose delay is over."""
    outlived: int
    """Jobs that have outlived a limit of time, such as `expires_at`."""
    paused: int
    """Queues with jobs that stay paused."""
    maintenance: bool
    """Whether an operator's maintenance goes on."""


class Release:
    """The release of one namespace. Made by `of`."""

    def __init__(self, nats: Connection, config: StoreConfig, clock: ServerClock, features: Sequence[FeatureBackup]) -> None:
        self._acting = {
            name: one.acting for feature in features for name, one in feature.counted.items() if one.acting is not None
        }
        records = Records(nats, nats, config)
        writer = Writer(nats, records, config)
        committer = Committer(nats, writer, config, CommitTimings())
        watches = Watches(nats, config, f"release-{secrets.token_hex(4)}", WatchTimings())
        bucket = Bucket(nats, nats, config, clock, records, committer, writer, watches)
        self._nats = nats
        self._config = config
        self._clock = clock
        self._records = records
        self._queues = Queues(bucket)

    @classmethod
    async def of(cls, nats: Connection, config: StoreConfig, features: Sequence[FeatureBackup]) -> Release:
        """Look for the system. Raises BackupProblem where there is none, OjsError backend_unavailable."""
        answer = await call(nats, f"STREAM.INFO.{config.records_stream}")
        if error := answer.get("error"):
            raise BackupProblem(
                f"there is no system in namespace {config.namespace} ({error.get('description')}): name another "
                "--namespace, or another --nats"
            )
        if is_restoring(answer["config"]):
            raise BackupProblem(f"namespace {config.namespace} is being restored: wait until that is over")
        clock = ServerClock()
        await clock.measure(nats, config.records_stream)
        replicas = int(answer["config"].get("num_replicas", 1))
        return cls(nats, StoreConfig(namespace=config.namespace, replicas=replicas), clock, features)

    async def held(self) -> Held | None:
        """Count what waits; None if the system doesn't wait for its release. Raises OjsError backend_unavailable."""
        record = await self._queues.get(MAINTENANCE)
        if record is None or record.restored is None:
            return None
        config = self._config
        paused = {one.name for one in await self._read(config.queue(ANY), queue_reader) if _is_paused(one)}
        acting = {name: await count_of(self._records, config) for name, count_of in self._acting.items()}
        waiting = await self._waiting()
        moving = {queue: jobs for queue, jobs in waiting.items() if queue not in paused}
        return Held(
            mark=record.restored,
            features=acting,
            queues=len(moving),
            jobs=sum(moving.values()),
            due=await count(self._nats, config.records_stream, config.due("scheduler", ANY), "due jobs"),
            outlived=await count(self._nats, config.records_stream, config.due("reaper", ANY), "jobs past a limit"),
            paused=len(waiting) - len(moving),
            maintenance=record.paused_as_of(self._clock.now()),
        )

    async def run(self) -> None:
        """Release the system; nothing happens if it doesn't wait. Raises OjsError backend_unavailable."""
        await self._queues.change(MAINTENANCE, released)

    async def _read(self, pattern: str, reader: RecordReader[T]) -> list[T]:
        raw = await self._records.many_raw(await self._records.subjects(pattern))
        kind = len(pattern) - len(ANY)
        found = (reader.read(subject[kind:], *one) for subject, one in raw.items() if one[1])
        return [one for one in found if one is not None]

    async def _waiting(self) -> dict[str, int]:
        """Return how many jobs wait in each queue that has any."""
        ready = await subjects_of(self._nats, self._config.ready_stream, f"{self._config.namespace}.*.{REST}")
        found: dict[str, int] = {}
        for subject, number in ready.items():
            if not self._config.seat_size(subject):
                queue = subject.split(".")[_QUEUE_TOKEN].replace("_", ".")
                found[queue] = found.get(queue, 0) + number
        return found


def _is_paused(record: QueueRecord) -> bool:
    return record.held and record.name not in {MAINTENANCE, DEFAULT_QUEUE}
