"""Pool records: changed by operators, known by heart to whoever hands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import structlog

from ojs_nats import metrics
from ojs_nats.errors import OjsError, not_found
from ojs_nats.pools import Past, Pool
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Conflict
from ojs_nats.store.link import Link
from ojs_nats.store.names import ANY, StoreConfig, encode_token
from ojs_nats.store.records import Records
from ojs_nats.store.stepback import step_back
from ojs_nats.store.swap import Swap, Swapper
from ojs_nats.store.watch import Watch

__all__ = ["Plan", "Pools"]

log = structlog.get_logger(__name__)

_TRIES: Final = 12
_DELETED_TTL_S: Final = 3_600

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Pool).decode


class Plan:
    """How to serve one fetch: how many jobs to ask of each queue at first, in which order."""

    def __init__(self, pool: Pool, past: Past, queues: Sequence[str], count: int, now: int) -> None:
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
    """The fair pools, and what this process has handed out of each."""

    def __init__(self, link: Link, records: Records, clock: ServerClock, config: StoreConfig, instance: str) -> None:
        self._records = records
        self._clock = clock
        self._config = config
        self._swapper = Swapper(link, records, config.records_stream)
        self._watch = Watch(link, config, f"pools-{instance}", [config.pool(ANY)], self._changed)
        self._known: dict[str, Pool] = {}
        self._of_queue: dict[str, Pool] = {}
        self._past: dict[str, Past] = {}
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
        return Plan(pool, self._past.setdefault(pool.name, Past()), queues, count, self._clock.now())

    async def all(self) -> list[Pool]:
        """By name, as of some milliseconds ago."""
        if not self._watch.loaded:
            await self._watch.begin()
        return [self._known[name] for name in sorted(self._known)]

    async def get(self, name: str) -> Pool:
        """Raises OjsError not_found."""
        pool = (await self._read(name))[1]
        if pool is None or pool.deleted:
            raise not_found("pool", name)
        return pool

    async def put(self, wanted: Pool) -> tuple[Pool | None, Pool]:
        """Create or replace a pool: as it was, if it was, and as it stands. Raises `conflict` if a queue is in another."""
        for queue in wanted.weights:
            other = self._of_queue.get(queue) if self._watch.loaded else None
            if other is not None and other.name != wanted.name:
                message = f"queue {queue!r} is in pool {other.name!r}; a queue can be in one pool only"
                raise OjsError("conflict", message, details={"queue": queue, "pool": other.name}, canonical="POOL_CONFLICT")
        return await self._write(wanted)

    async def delete(self, name: str) -> Pool:
        """Its queues are served from left to right again. Raises OjsError not_found."""
        pool = await self.get(name)
        await self._write(msgspec.structs.replace(pool, deleted=True))
        return pool

    async def reset(self) -> None:
        self._past.clear()
        await self._watch.reset()

    async def stop(self) -> None:
        await self._watch.stop()

    async def _write(self, wanted: Pool) -> tuple[Pool | None, Pool]:
        for tries in range(1, _TRIES + 1):
            sequence, old = await self._read(wanted.name)
            moment = self._clock.moment()
            if old is not None and old.deleted:
                old = None
            created_at = moment.now if old is None else old.created_at
            pool = msgspec.structs.replace(wanted, created_at=created_at, updated_at=moment.now, op=moment.op)
            body, subject = _encode(pool), self._config.pool(encode_token(pool.name))
            op = pool.op
            swap = Swap(
                subject=subject,
                body=body,
                expected=sequence,
                mine=lambda found, op=op: _decode(found).op == op,  # type: ignore[misc]
                ttl_s=_DELETED_TTL_S if pool.deleted else None,
            )
            try:
                written = await self._swapper.swap(swap)
            except Conflict:
                await step_back(self._clock, tries)
                continue
            self._watch.put(subject, written, body)
            return old, pool
        raise OjsError("backend_timeout", f"pool {wanted.name!r} changed too often; try again", retry_after=1)

    async def _read(self, name: str) -> tuple[int, Pool | None]:
        sequence, body = await self._records.leader_raw(self._config.pool(encode_token(name))) or (0, b"")
        return sequence, _decode(body) if body else None

    def _changed(self) -> None:
        pools = [_decode(body) for _, body in self._watch.entries.values()]
        known = self._known
        self._known = {pool.name: pool for pool in pools if not pool.deleted}
        self._of_queue = {queue: pool for pool in self._known.values() for queue in pool.weights}
        self._isolated = {queue: pool.name for queue, pool in self._of_queue.items() if pool.isolated}
        # A pool that was changed begins anew: what was due by its old weights is not held against the new ones.
        self._past = {name: past for name, past in self._past.items() if self._known.get(name) == known.get(name)}
