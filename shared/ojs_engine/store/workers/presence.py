"""Who is there: the beats of services, and the records of workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import ClassVar, Final

import msgspec
import structlog
from msgspec import Struct

from ojs_engine.access.principal import Reach
from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.numbers import At
from ojs_engine.base.waiting import until_next
from ojs_engine.domain.worker import Mark, Worker
from ojs_engine.jetstream.api import put, put_if
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import StoreConfig, Wildcard, encode_token
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Records
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

ROLES: Final = ("gateway", "scheduler", "reaper", "projector")
"""A system has at least one process of each. Features have roles of their own."""
STOPPED: Final = "stopped"
"""State of a worker that deregistered."""


class PresenceTimings(Timings, frozen=True, kw_only=True):
    """How often a service says that it is alive."""

    beat_s: float = 5.0
    """Between two beats."""
    again_s: float = 1.0
    """After a beat that was not stored: whether it can be again is what the process's readiness goes by."""
    max_gap_ms: int = 10_000
    """A service whose beats are further apart than this was away in between."""
    kept_s: int = 120
    """How long the last beat of a service stays."""
    order: ClassVar[Order] = (
        ("beat_s", "max_gap_ms", "a service that beats would count as away"),
        ("max_gap_ms", "kept_s", "a beat would be gone while its service counts as alive"),
    )
    usual: ClassVar[Order] = (("again_s", "max_gap_ms", "one beat that failed would count as absence"),)


class ServiceBeat(Struct, frozen=True, omit_defaults=True):
    """A service process: alive without a gap from `since` to `at` (server time, Unix ms); `left` if it stopped in order.

    `version` is that of its program; older ones don't say theirs.
    """

    role: str
    instance: str
    since: At
    at: At
    left: bool = False
    version: str = ""


class WorkerRecord(Worker, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker said of itself when it registered or last beat; `seen_at` is server time in Unix ms."""

    seen_at: At = 0
    signed_off: bool = False
    """Whether it has said itself that it stops."""
    reach: Reach = Reach()
    """The jobs of whoever speaks for it. What it says means nothing for others, and no narrowed key of another reach
    may speak for it.
    """

    def is_process(self, pid: int | None, started_at: str | None) -> bool:
        """Return whether the process that is described so may be the one of this record; what is None isn't known."""
        told = ((self.pid, pid), (self.started_at, started_at))
        return all(mine is None or its is None or mine == its for mine, its in told)


def _sound(token: str, worker: WorkerRecord) -> None:
    if encode_token(worker.id) != token:
        raise ValueError("it is the record of another worker")
    if worker.labels:
        msgspec.json.decode(worker.labels)


worker_reader: Final = RecordReader("worker", msgspec.json.Decoder(WorkerRecord).decode, _sound)
_beat_reader: Final = RecordReader("service", msgspec.json.Decoder(ServiceBeat).decode)


def covers(beats: Sequence[ServiceBeat], start: int, end: int, max_gap_ms: int) -> bool:
    """Return whether at every moment from `start` to `end` some service was alive, gaps up to `max_gap_ms` apart."""
    reached = start
    for beat in sorted(beats, key=lambda beat: beat.since):
        if beat.since > reached + max_gap_ms:
            return False
        reached = max(reached, beat.at)
    return reached + max_gap_ms >= end


class Workers:
    """Worker records: one small unconditional write per heartbeat; they leave an hour after the last."""

    def __init__(self, bucket: Bucket) -> None:
        self._nats = bucket.nats
        self._records = bucket.records
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._kept = bucket.kept
        self._config = bucket.config

    async def beat(self, record: WorkerRecord) -> Mark:
        """Store a sign of life; returns when that was."""
        now = self._clock.now()
        body = msgspec.json.encode(msgspec.structs.replace(record, seen_at=now))
        return Mark(await put(self._nats, self._subject(record.id), body, self._kept.worker_s, "a worker's heartbeat"), now)

    async def get(self, worker_id: str) -> WorkerRecord | None:
        """The worker as the leader has it; None if it never registered, or left long ago."""
        return (await self.latest(worker_id))[1]

    async def latest(self, worker_id: str) -> tuple[int, WorkerRecord | None]:
        """Return the same with the sequence of its record, 0 if there is none."""
        sequence, body = await self._records.latest_raw(self._subject(worker_id)) or (0, b"")
        return sequence, worker_reader.read(encode_token(worker_id), sequence, body) if body else None

    async def remove(
        self, worker_id: str, *, signed_off: bool = False, pid: int | None = None, started_at: str | None = None
    ) -> Mark | None:
        """Note that a worker has left; returns when, None if there is none, or another process than the one that is
        meant.

        What it still holds is requeued without counting the attempt if it has `signed_off` itself; else it counts as
        dead. Raises OjsError backend_unavailable.
        """
        async for _ in self._tries():
            sequence, found = await self.latest(worker_id)
            if found is None or not found.is_process(pid, started_at):
                return None
            left = msgspec.structs.replace(found, state=STOPPED, signed_off=signed_off)
            now, body = self._clock.now(), msgspec.json.encode(left)
            what = "a worker's leave"
            written = await put_if(self._nats, self._subject(worker_id), body, sequence, what, ttl_s=self._kept.worker_s)
            if written is not None:
                return Mark(written, now)
        raise contended(f"worker {worker_id}")

    def _subject(self, worker_id: str) -> str:
        return self._config.record("worker", encode_token(worker_id))


class Presence:
    """This process's own beats, and those of others.

    The beats of gateways say whether workers could have been heard: while no gateway was there, silence means nothing.
    """

    def __init__(
        self,
        nats: Connection,
        records: Records,
        clock: ServerClock,
        config: StoreConfig,
        role: str,
        instance: str,
        timings: PresenceTimings,
    ) -> None:
        self.timings = timings
        self._nats = nats
        self._records = records
        self._clock = clock
        self._config = config
        self._mine = ServiceBeat(role=role, instance=instance, since=clock.now(), at=0, version=version("ojs-nats-server"))
        self._task: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        """Why the last beat was not stored, None if it was."""

    async def start(self) -> None:
        await self._beat()
        self._task = start_loop("presence", self._turn, tell=False)

    async def stop(self) -> None:
        if self._task is not None:
            await stop_loop(self._task)
            with contextlib.suppress(OjsError):
                await self._beat(left=True)

    async def of(self, role: str) -> list[ServiceBeat]:
        """The beats of all processes of a role (`*`: of every role) in the last two minutes."""
        found = await self._records.matching(self._config.record("service", Wildcard(f"{role}.*")))
        prefix = len(self._config.record("service", ""))
        beats = [_beat_reader.read(subject[prefix:], *one) for subject, one in found.items()]
        return [beat for beat in beats if beat is not None]

    async def live(self) -> list[str]:
        """The instances of every role that beat lately."""
        return [beat.instance for beat in await self.lately()]

    async def by_role(self) -> Counter[str]:
        """How many processes of each role beat lately."""
        return Counter(beat.role for beat in await self.lately())

    async def lately(self) -> list[ServiceBeat]:
        """The processes of every role that beat lately and haven't left."""
        horizon = self._clock.now() - self.timings.max_gap_ms
        return [beat for beat in await self.of("*") if beat.at >= horizon and not beat.left]

    async def _turn(self) -> None:
        await asyncio.sleep(until_next(self.timings.beat_s) if self.trouble is None else self.timings.again_s)
        try:
            await self._beat()
        except OjsError as error:
            self.trouble = error.message
            raise
        self.trouble = None

    async def _beat(self, *, left: bool = False) -> None:
        now = self._clock.now()
        since = now if now - self._mine.at > self.timings.max_gap_ms else self._mine.since
        beat = msgspec.structs.replace(self._mine, since=since, at=now, left=left)
        subject = self._config.record("service", f"{encode_token(beat.role)}.{encode_token(beat.instance)}")
        await put(self._nats, subject, msgspec.json.encode(beat), self.timings.kept_s, "a service's beat")
        self._mine = beat
