"""Pool records: changed by operators, known by heart to whoever hands out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.domain.fair_pools import DispatchHistory, Pool
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY, encode_token
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.records.writer import Conflict
from ojs_engine.telemetry import metrics

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


class FairPools:
    """The fair pools, and what this process has handed out of each."""

    def __init__(self, bucket: Bucket) -> None:
        self._records = bucket.records
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._kept = bucket.kept
        self._config = bucket.config
        self._documents = Documents(bucket, bucket.config.pool, pool_reader, lambda pool, op: pool.op == op)
        subjects = [bucket.config.pool(ANY)]
        self._watch = bucket.watches.add("pools", subjects, self._changed)
        self._known: dict[str, Pool] = {}
        self._of_queue: dict[str, Pool] = {}
        self._past: dict[str, DispatchHistory] = {}
        self._isolated: dict[str, str] = {}
        """The pool of each queue that only its own workers are served from."""

    async def open_to(self, queues: Sequence[str], pool: str | None) -> Sequence[str]:
        """Those of the queues that a worker of a pool, or of none, may have jobs of."""
        if not self._watch.loaded:
            await self._watch.begin()
        if not self._isolated:
            return queues
        return [queue for queue in queues if self._isolated.get(queue, pool) == pool]

    async def plan(self, queues: Sequence[str], count: int) -> Plan | None:
        """How to serve a fetch; None if its queues aren't together in one fair pool, and are served from left to right."""
        if not self._watch.loaded:
            await self._watch.begin()
        if not self._of_queue or len(queues) < 2:
            return None
        pool = self._of_queue.get(queues[0])
        if pool is None or not pool.fair or any(queue not in pool.weights for queue in queues):
            return None
        return Plan(pool, self._past.setdefault(pool.name, DispatchHistory()), queues, count, self._clock.now())

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

    async def clear(self) -> None:
        """Forget what was handed out (reset)."""
        self._past.clear()

    async def _write(self, wanted: Pool) -> tuple[Pool | None, Pool]:
        everyone = self._config.pool(ANY)
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
            self._watch.put(self._config.pool(token), written, _encode(pool))
            return old, pool
        raise contended(f"pool {wanted.name!r}")

    def _readable(self, found: Mapping[str, tuple[int, bytes]]) -> list[Pool]:
        """Those that can be read of some records by subject."""
        prefix = len(self._config.pool(""))
        read = [pool_reader.read(subject[prefix:], *one) for subject, one in found.items() if one[1]]
        return [pool for pool in read if pool is not None]

    def _changed(self) -> None:
        pools = self._readable(self._watch.entries)
        known = self._known
        self._known = {pool.name: pool for pool in pools if not pool.deleted}
        self._of_queue = {queue: pool for pool in self._known.values() for queue in pool.weights}
        self._isolated = {queue: pool.name for queue, pool in self._of_queue.items() if pool.isolated}
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
