"""Who is there: the beats of services, and the records of workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from ojs_nats.errors import OjsError
from ojs_nats.store.api import put
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig, Wildcard, encode_token
from ojs_nats.store.records import Records
from ojs_nats.wire.worker import Worker

__all__ = ["MAX_GAP_MS", "Presence", "ServiceBeat", "WorkerRecord", "Workers", "covers"]

log = structlog.get_logger(__name__)

BEAT_S: Final = 5.0
MAX_GAP_MS: Final = 10_000
"""A service whose beats are further apart than this was away in between."""
STOPPED: Final = "stopped"
"""State of a worker that deregistered."""
_SERVICE_TTL_S: Final = 120
_WORKER_TTL_S: Final = 3600


class ServiceBeat(Struct, frozen=True, omit_defaults=True):
    """A service process: alive without a gap from `since` to `at` (server time, Unix ms); `left` if it stopped in order."""

    role: str
    instance: str
    since: int
    at: int
    left: bool = False


class WorkerRecord(Worker, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker said of itself when it registered or last beat; `seen_at` is server time in Unix ms."""

    seen_at: int = 0


_decode_worker = msgspec.json.Decoder(WorkerRecord).decode
_decode_beat = msgspec.json.Decoder(ServiceBeat).decode


def covers(beats: Sequence[ServiceBeat], start: int, end: int) -> bool:
    """Whether at every moment from `start` to `end` some service was alive, gaps up to `MAX_GAP_MS` apart."""
    reached = start
    for beat in sorted(beats, key=lambda beat: beat.since):
        if beat.since > reached + MAX_GAP_MS:
            return False
        reached = max(reached, beat.at)
    return reached + MAX_GAP_MS >= end


class Workers:
    """Worker records: one small unconditional write per heartbeat; they leave an hour after the last."""

    def __init__(self, link: Link, records: Records, clock: ServerClock, config: StoreConfig) -> None:
        self._link = link
        self._records = records
        self._clock = clock
        self._config = config

    async def beat(self, record: WorkerRecord) -> WorkerRecord:
        """Store a sign of life; returns the record with its `seen_at`."""
        seen = msgspec.structs.replace(record, seen_at=self._clock.now())
        await put(self._link, self._subject(record.id), msgspec.json.encode(seen), _WORKER_TTL_S, "a worker's heartbeat")
        return seen

    async def get(self, worker_id: str) -> WorkerRecord | None:
        """The worker as the leader has it; None if it never registered, deregistered, or left long ago."""
        body = await self._records.named(self._subject(worker_id))
        return _decode_worker(body) if body else None

    async def remove(self, worker_id: str) -> bool:
        """Note that a worker has left; whether there was one. Jobs it still holds are then found to be without a worker."""
        found = await self.get(worker_id)
        if found is None:
            return False
        left = msgspec.structs.replace(found, state=STOPPED)
        await put(self._link, self._subject(worker_id), msgspec.json.encode(left), _WORKER_TTL_S, "a worker's leave")
        return True

    def _subject(self, worker_id: str) -> str:
        return self._config.record("worker", encode_token(worker_id))


class Presence:
    """This process's own beats, and those of others.

    The beats of gateways say whether workers could have been heard: while no gateway was there, silence means nothing.
    """

    def __init__(self, link: Link, records: Records, clock: ServerClock, config: StoreConfig, role: str, instance: str) -> None:
        self._link = link
        self._records = records
        self._clock = clock
        self._config = config
        self._mine = ServiceBeat(role=role, instance=instance, since=clock.now(), at=0)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._beat()
        self._task = asyncio.create_task(self._run(), name="presence")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            with contextlib.suppress(OjsError):
                await self._beat(left=True)

    async def of(self, role: str) -> list[ServiceBeat]:
        """The beats of all processes of a role (`*`: of every role) in the last two minutes."""
        bodies = await self._records.matching(self._config.record("service", Wildcard(f"{role}.*")))
        return [_decode_beat(body) for body in bodies]

    async def live(self) -> list[str]:
        """The instances of every role that beat lately."""
        horizon = self._clock.now() - MAX_GAP_MS
        return [beat.instance for beat in await self.of("*") if beat.at >= horizon and not beat.left]

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self._beat()
            except OjsError as error:
                log.debug("no beat", reason=error.message)

    async def _beat(self, *, left: bool = False) -> None:
        now = self._clock.now()
        since = now if now - self._mine.at > MAX_GAP_MS else self._mine.since
        beat = ServiceBeat(role=self._mine.role, instance=self._mine.instance, since=since, at=now, left=left)
        subject = self._config.record("service", f"{encode_token(beat.role)}.{encode_token(beat.instance)}")
        await put(self._link, subject, msgspec.json.encode(beat), _SERVICE_TTL_S, "a service's beat")
        self._mine = beat
