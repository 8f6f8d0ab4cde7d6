"""The lock of a fingerprint: what it says, whose record decides, and how it is let go (docs/adr/012)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

import msgspec
import structlog
from msgspec import Raw, Struct

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Transition
from ojs_engine.domain.transitions.retention import left_s
from ojs_engine.domain.transitions.settle import amended
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.documents import Documents
from ojs_engine.store.records.records import Stored, job_reader
from ojs_engine.store.records.writer import Conflict, Write
from ojs_features.unique.timings import LockTimings

log = structlog.get_logger(__name__)

REMEMBERED: Final = 16
"""Earlier owners that a lock still names, because they live on in a state that the policy of the next did not count."""
_FENCE: Final = "unique.fence"
"""The type of a tombstone that no job was before."""
_NO_ARGS: Final = Raw(b"[]")


class Lock(Struct, frozen=True, omit_defaults=True):
    """`at`: when it was taken (server time, Unix ms). `also`: earlier owners whose records count as well."""

    owner: str
    op: str
    at: int
    also: tuple[str, ...] = ()


encode_lock: Final = msgspec.json.Encoder().encode
lock_reader: Final = RecordReader("unique", msgspec.json.Decoder(Lock).decode)


LockVerdict = Literal["held", "let go", "gone"]
"""What became of a lock that was looked at: `let go` also stands for one that somebody is working on."""


class Locks:
    """Reads locks and the records behind them, and lets go of those whose owners have ended."""

    def __init__(self, bucket: Bucket, timings: LockTimings) -> None:
        self._timings = timings
        self._records = bucket.records
        self._committer = bucket.committer
        self._writer = bucket.writer
        self.documents = Documents(
            bucket, partial(bucket.config.record, lock_reader.kind), lock_reader, lambda lock, op: lock.op == op
        )
        self._clock = bucket.clock
        self._config = bucket.config
        self._releases: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Finish the releases under way, as far as NATS allows it now."""
        if self._releases:
            _, late = await asyncio.wait(self._releases, timeout=self._timings.close_s)
            for task in late:
                task.cancel()

    async def read(self, key: str) -> tuple[int, Lock | None]:
        """The lock of a fingerprint and its sequence. Raises OjsError unreadable_record."""
        return await self.documents.read(key)

    async def jobs(self, ids: Sequence[str]) -> dict[str, Stored]:
        found = await asyncio.gather(*(self._records.leader(job_id) for job_id in ids))
        return dict(zip(ids, found, strict=True))

    async def fence(self, job_id: str, stored: Stored) -> bool:
        """Write to the record of a lock's owner, so that the write which that owner may still have in mind fails.

        A record that isn't there becomes a tombstone; that of a finished job is stored as it was. False: it has moved
        on.
        """
        moment = self._clock.moment()
        if stored.job is None:
            job = Job(id=job_id, type=_FENCE, args=_NO_ARGS, state=State.CANCELLED, created_at=moment.now, deleted=True)
            fence = amended(job, job, moment)
        else:
            fence = amended(stored.job, stored.job, moment)
        try:
            await self._committer.commit(fence, stored.sequence, moment.op)
        except Conflict:
            return False
        return True

    async def fenced(self, job_id: str) -> bool:
        """Whether nothing but a fence is in the place of a job's record."""
        left = await self._tombstone(job_id)
        return left is not None and left.type == _FENCE

    async def owner_deleted(self, key: str, lock: Lock) -> bool:
        """Whether the life that took a lock has ended, and its job is deleted: it writes nothing more."""
        left = await self._tombstone(lock.owner)
        return left is not None and (left.unique_key, left.lock) == (key, lock.op)

    async def _tombstone(self, job_id: str) -> Job | None:
        found = await self._records.leader_raw(self._config.job(job_id))
        left = job_reader.read(job_id, *found) if found is not None and found[1] else None
        return left if left is not None and left.deleted else None

    # Letting go

    def ended(self, ending: Transition) -> None:
        """Have the lock of a job leave that has ended."""
        assert ending.ttl_s is not None
        task = asyncio.create_task(self._release(ending.job, ending.ttl_s), name=f"unique-release-{ending.job.id}")
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _release(self, job: Job, ttl_s: int) -> None:
        """Let the lock of a finished job leave soon after its record, or hand it to an earlier owner that lives on.

        Only the lock of the life that has ended: a manual retry takes it anew, under another op, before it starts
        another one. If this fails, the lock stays until the next push of its fingerprint, which takes it, or until it
        is tidied away.
        """
        assert job.unique_key is not None
        try:
            sequence, lock = await self.read(job.unique_key)
            if lock is not None and (lock.owner, lock.op) == (job.id, job.lock):
                earlier = await self.jobs(lock.also)
                stays_s = self._timings.let_go_s if job.deleted else ttl_s + self._timings.spare_s
                await self._let_go(job.unique_key, sequence, lock, earlier, stays_s)
        except (Conflict, OjsError) as problem:
            log.debug("a lock stays without a time to live", job_id=job.id, reason=str(problem) or "it has been taken")

    async def tidy(self, key: str) -> LockVerdict:
        """Let a lock go whose owner has ended, or was never stored, and left it behind.

        Raises OjsError backend_unavailable.
        """
        sequence, lock = await self.read(key)
        if lock is None:
            return "gone"
        found = await self.jobs([lock.owner, *lock.also])
        owner = found.pop(lock.owner)
        now = self._clock.now()
        ttl_s: int | None = self._timings.let_go_s
        if owner.job is not None and owner.job.unique_key == key:
            stays_s = left_s(owner.job, now) if owner.job.terminal else None
            ttl_s = None if stays_s is None else stays_s + self._timings.spare_s
        if ttl_s is None:  # its owner lives, or is kept for ever
            return "held"
        if now - lock.at < self._timings.young_ms:
            return "let go"  # by somebody who is at it
        try:
            if settled(owner.job, key, lock) or await self.fence(lock.owner, owner):
                await self._let_go(key, sequence, lock, found, ttl_s)
                log.info("a lock was let go that a unique job had left behind", job_id=lock.owner)
        except Conflict:
            log.debug("a lock was taken while it was to be let go", job_id=lock.owner)
        return "let go"

    async def _let_go(self, key: str, sequence: int, lock: Lock, earlier: dict[str, Stored], ttl_s: int) -> None:
        """Hand a lock to the first earlier owner that lives on, or give it a time to live. Raises Conflict."""
        heir = next((found.job for found in earlier.values() if found.job is not None and not found.job.terminal), None)
        left = lock
        if heir is not None:
            rest = (lock.owner, *(other for other in lock.also if other != heir.id))
            left = Lock(heir.id, heir.lock or "", lock.at, rest[:REMEMBERED])
        keep = None if heir is not None else ttl_s
        await self._writer.write(Write(self.documents.subject(key), encode_lock(left), sequence, lambda _: False, ttl_s=keep))


def settled(owner: Job | None, key: str, lock: Lock) -> bool:
    """Whether no write of the lock's owner is to come that could make a live job of the fingerprint.

    A finished job's record may be about to be swapped by a manual retry, unless the lock is still that of its last
    life. Who takes the lock for an id that a live job has will be refused, whatever that job's fingerprint.
    """
    if owner is None:
        return False
    return not owner.terminal or (owner.unique_key == key and owner.lock == lock.op)
