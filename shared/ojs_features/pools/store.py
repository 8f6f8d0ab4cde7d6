"""Pool records: changed by operators, known by heart to whoever hands out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec
import structlog

from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY, encode_token
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_features.pools.rules import DispatchHistory, Pool

log = structlog.get_logger(__name__)


_encode: Final = msgspec.json.Encoder().encode


def _sound(token: str, pool: Pool) -> None:
    if encode_token(pool.name) != token:
        raise ValueError("it is the record of another pool")


pool_reader: Final = RecordReader("pool", msgspec.json.Decoder(Pool).decode, _sound)


class Plan:
    """How to serve one fetch: how many jobs to ask of each queue at first, in which order."""

    def __init__(self, pool: Pool, past: DispatchHistory, queues: Sequence[str], count: int, now: int) -> None:
        self._pool = pool
        self._past = past
        self._now = now
        self.shares, self.starved = past.plan(pool, queues, count, now)

    def served(self, numbers: Mapping[str, int], emptied: Sequence[str]) -> None:
        """Note what each queue gave, and which had nothing more."""
        self._past.served(self._pool, self.shares, numbers, emptied, self._now)
        for queue in self.starved:
            if numbers[queue]:
                metrics.starved(queue)


class Pools:
    """The pools, and what this process has handed out of each: the order of fetches from their queues."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._records = bucket.records
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._kept = bucket.kept
        self._everyone = bucket.config.record(pool_reader.kind, ANY)
        self._documents = Documents(
            bucket, lambda token: bucket.config.record(pool_reader.kind, token), pool_reader, lambda pool, op: pool.op == op
        )
        self._watch = bucket.watches.add("pools", [self._everyone], self._changed)
        self._known: dict[str, Pool] = {}
        self._of_queue: dict[str, Pool] = {}
        self._past: dict[str, DispatchHistory] = {}
        self.queues: AbstractSet[str] | None = None

    async def learn(self) -> None:
        """Return when the pools are known. Raises OjsError backend_unavailable."""
        await self._watch.begin()

    def open_to(self, queues: Sequence[str], pool: str | None) -> Sequence[str]:
        """Return those of the queues that a worker of a pool, or of none, may have jobs of."""
        return [queue for queue in queues if self._takes(self._of_queue.get(queue), pool)]

    @staticmethod
    def _takes(of_queue: Pool | None, pool: str | None) -> bool:
        return of_queue is None or not of_queue.isolated or of_queue.name == pool

    def plan(self, queues: Sequence[str], count: int) -> Plan | None:
        """Return how to serve a fetch; None if its queues aren't together in one fair pool."""
        pool = self._of_queue.get(queues[0]) if len(queues) > 1 else None
        if pool is None or not pool.fair or any(queue not in pool.weights for queue in queues):
            return None
        return Plan(pool, self._past.setdefault(pool.name, DispatchHistory()), queues, count, self._clock.now())

    async def intervals(self) -> Mapping[str, int]:
        """Return the intervals of queues whose pools say them, as of some milliseconds ago."""
        pools = await self.all()
        return {queue: pool.prevention.interval_ms for pool in pools if pool.prevention is not None for queue in pool.weights}

    async def all(self) -> list[Pool]:
        """By name, as of some milliseconds ago."""
        if not self._watch.loaded:
            await self._watch.begin()
        return [self._known[name] for name in sorted(self._known)]

    async def get(self, name: str) -> Pool:
        """Raises OjsError not_found."""
        _, pool = await self._documents.read(encode_token(name))
        if pool is None or pool.deleted:
            raise not_found("pool", name)
        return pool

    async def put(self, wanted: Pool) -> tuple[Pool | None, Pool]:
        """Create or replace a pool: as it was, if it was, and as it stands. Raises `conflict` if a queue is in another."""
        return await self._write(wanted)

    async def delete(self, name: str) -> Pool:
        """Its queues are served from left to right again. Raises OjsError not_found."""
        pool = await self.get(name)
        await self._write(msgspec.structs.replace(pool, deleted=True))
        return pool

    async def _write(self, wanted: Pool) -> tuple[Pool | None, Pool]:
        everyone = self._everyone
        async for _ in self._tries():
            # Two pools that claim one queue are different records, so each write is over the last one of all pools.
            sequence, _ = await self._records.leader_raw(everyone) or (0, b"")
            found = await self._records.many_raw(await self._records.subjects(everyone))
            if sequence != max((at for at, _ in found.values()), default=0):
                continue  # a replica that is behind
            pools = {pool.name: pool for pool in self._readable(found) if not pool.deleted}
            old = pools.pop(wanted.name, None)
            if not wanted.deleted:
                _check_apart(wanted, pools.values())
            moment = self._clock.moment()
            created_at = moment.now if old is None else old.created_at
            pool = msgspec.structs.replace(wanted, created_at=created_at, updated_at=moment.now, op=moment.op)
            token = encode_token(pool.name)
            beside = Beside(ttl_s=self._kept.deleted_s if pool.deleted else None)
            try:
                written = await self._documents.write(token, pool, sequence, pool.op, beside, among=everyone)
            except Conflict:
                continue
            self._watch.put(self._documents.subject(token), written, _encode(pool))
            return old, pool
        raise contended(f"pool {wanted.name!r}")

    def _readable(self, found: Mapping[str, tuple[int, bytes]]) -> list[Pool]:
        """Those that can be read of some records by subject."""
        prefix = len(self._documents.subject(""))
        read = [pool_reader.read(subject[prefix:], *one) for subject, one in found.items() if one[1]]
        return [pool for pool in read if pool is not None]

    def _changed(self) -> None:
        pools = self._readable(self._watch.entries)
        known = self._known
        self._known = {pool.name: pool for pool in pools if not pool.deleted}
        self._of_queue = {queue: pool for pool in self._known.values() for queue in pool.weights}
        self.queues = self._of_queue.keys() if self._watch.loaded else None
        # A pool that was changed begins anew: what was due by its old weights is not held against the new ones.
        self._past = {name: past for name, past in self._past.items() if self._known.get(name) == known.get(name)}


def _check_apart(wanted: Pool, others: Iterable[Pool]) -> None:
    """Raises `conflict` if a queue is in another pool."""
    for other in others:
        for queue in wanted.weights.keys() & other.weights.keys():
            message = f"queue {queue!r} is in pool {other.name!r}; a queue can be in one pool only"
            raise OjsError(
                "conflict",
                message,
                hint=f"Take it out of pool {other.name!r} first, or leave it out of this one.",
                details={"queue": queue, "pool": other.name},
                canonical="POOL_CONFLICT",
            )
