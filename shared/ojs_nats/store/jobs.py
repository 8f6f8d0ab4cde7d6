"""Jobs: create, read, change. Read, decide (pure), swap; on a conflict read again and decide anew."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from msgspec import Struct

from ojs_nats import transitions
from ojs_nats.errors import OjsError, duplicate, not_found
from ojs_nats.job import Job, State
from ojs_nats.limits import policy_of
from ojs_nats.store.bounds import Bounds, Check, Superfluous
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer, Conflict
from ojs_nats.store.limits import Limits, key_scope
from ojs_nats.store.link import Link
from ojs_nats.store.lru import Lru
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.queues import Queues
from ojs_nats.store.records import Records, Stored
from ojs_nats.store.stepback import step_back
from ojs_nats.store.unique import Uniqueness
from ojs_nats.transitions.result import Moment, Transition

__all__ = ["Change", "Extended", "Jobs"]

MAX_TRIES: Final = 12
"""Conflicts on one job in one request before it is given up; each means that somebody else's transition won."""
_WATCH_PAUSE_S: Final = 1.0

_NOTED: Final = 10_000
"""Keys of limits that this process has seen a record of."""

Decide = Callable[[Job, Moment], Transition]


class Change(Struct, frozen=True):
    """A job before and after a transition."""

    before: Job
    after: Job


class Extended(Struct, frozen=True):
    """What a heartbeat did: the ids it holds on to, the ids it lost to a cancellation, and the jobs it holds."""

    extended: list[str]
    cancelled: list[str]
    jobs: list[Job]


class RecordCache:
    """The records of jobs that this process handed out, so that their ack needs no read. Bounded by number and bytes."""

    MAX_RECORDS: Final = 20_000
    MAX_BYTES: Final = 64 * 1024 * 1024

    def __init__(self) -> None:
        self._records: OrderedDict[str, tuple[Stored, int]] = OrderedDict()
        self._bytes = 0

    def put(self, sequence: int, job: Job) -> None:
        self.drop(job.id)
        size = len(memoryview(job.args)) + len(memoryview(job.meta)) + 1000
        if size > self.MAX_BYTES // 16:
            return
        self._records[job.id] = (Stored(sequence, job), size)
        self._bytes += size
        while self._bytes > self.MAX_BYTES or len(self._records) > self.MAX_RECORDS:
            _, (_, dropped) = self._records.popitem(last=False)
            self._bytes -= dropped

    def get(self, job_id: str) -> Stored | None:
        entry = self._records.get(job_id)
        return entry[0] if entry else None

    def drop(self, job_id: str) -> None:
        entry = self._records.pop(job_id, None)
        if entry is not None:
            self._bytes -= entry[1]

    def clear(self) -> None:
        self._records.clear()
        self._bytes = 0


class Jobs:
    """Every write to a job record in the product goes through here or through the hand-out."""

    def __init__(
        self,
        link: Link,
        records: Records,
        committer: Committer,
        queues: Queues,
        bounds: Bounds,
        limits: Limits,
        unique: Uniqueness,
        clock: ServerClock,
        config: StoreConfig,
    ) -> None:
        self._link = link
        self._records = records
        self._committer = committer
        self._queues = queues
        self._bounds = bounds
        self._limits = limits
        self._noted: Lru[bool] = Lru(_NOTED)
        self._unique = unique
        self._clock = clock
        self._config = config
        self.cache = RecordCache()

    async def push(self, draft: Job, *, placed: bool = False) -> Job:
        """Store a new job with its hints; the answer is another job if its uniqueness policy says to ignore duplicates.

        `placed`: its place in its queue is held already, see `place`.
        Raises OjsError duplicate when the id is taken or the job is not unique, or whatever its queue refuses.
        """
        draft = await self._queues.admit(draft)
        if draft.rate_limit:
            await self._note_limit(draft)
        if not placed and self._queues.bound(draft.queue) and transitions.waits_at_once(draft, self._clock.now()):
            return await self._push_bounded(draft)
        return await self._push(draft)

    async def _push_bounded(self, draft: Job) -> Job:
        try:
            async with self._bounds.places(draft.queue, 1, self._unless_superfluous(draft)):
                return await self._push(draft)
        except Superfluous as found:
            return found.jobs[0]

    def _unless_superfluous(self, draft: Job) -> Check:
        """Nothing is dropped from a full queue for a job that won't be stored, nor is that refused for want of room."""

        async def check(dropping: bool) -> None:
            if dropping or draft.unique_key is not None:
                existing = await self._unique.existing(draft)
                if existing is not None:
                    raise Superfluous([existing])

        return check

    @asynccontextmanager
    async def place(self, draft: Job) -> AsyncIterator[bool]:
        """Hold the place that a job takes in its queue, for who has to store something else before the job; false if it takes
        none because it is a duplicate, as its push will find. Raises whatever its queue refuses it for.
        """
        draft = await self._queues.admit(draft)
        async with AsyncExitStack() as held:
            placed = True
            try:
                await held.enter_async_context(self._bounds.places_for([draft], self._unless_superfluous(draft)))
            except Superfluous:
                placed = False
            except OjsError as error:
                if error.code != "duplicate":
                    raise
                placed = False
            yield placed

    async def _note_limit(self, draft: Job) -> None:
        """Let a key be looked at before its first job starts."""
        policy = policy_of(draft)
        if policy is not None and policy.key is not None and self._noted.get(policy.key) is None:
            await self._limits.remember(key_scope(policy.key), policy)
            self._noted.put(policy.key, value=True, size=1)

    async def _push(self, draft: Job) -> Job:
        if draft.unique_key is not None:
            return await self._unique.push(draft)
        expected = 0
        for tries in range(1, MAX_TRIES + 1):
            moment = self._clock.moment()
            transition = transitions.push(draft, moment)
            try:
                await self._committer.commit(transition, expected, moment.op)
            except Conflict:
                found = await self._records.leader(draft.id)
                if found.job is not None:
                    await self._committer.tend(found, moment.now)
                    raise duplicate(draft.id, found.job.state) from None
                expected = found.sequence  # a marker or a tombstone: name it and go on
                draft = await self._records.continued(draft)
                await step_back(self._clock, tries)
            else:
                return transition.job
        raise _contended(draft.id)

    async def get(self, job_id: str) -> Job:
        """The job as the leader has it. Raises OjsError not_found."""
        found = await self._records.leader(job_id)
        if found.job is None:
            raise not_found("job", job_id)
        return found.job

    async def change(self, job_id: str, decide: Decide) -> Change:
        """Apply a pure decision to a job.

        The first try takes the cached or nearest record; a refusal, or an absence, counts only on the leader's word.
        Raises OjsError not_found, or whatever `decide` raises.
        """
        current = self.cache.get(job_id)
        certain = current is None and self._records.nearest_is_leader
        if current is None:
            current = await self._records.nearest(job_id)
        for tries in range(1, MAX_TRIES + 1):
            moment = self._clock.moment()
            before = current.job
            try:
                if before is None:
                    raise not_found("job", job_id)
                transition = decide(before, moment)
            except OjsError:
                if certain:
                    raise
                current, certain = await self._records.leader(job_id), True
                continue
            try:
                sequence = await self._committer.commit(transition, current.sequence, moment.op)
            except Conflict:
                await step_back(self._clock, tries)
                current, certain = await self._records.leader(job_id), True
                continue
            self._remember(sequence, transition.job)
            return Change(before, transition.job)
        raise _contended(job_id)

    async def revive(self, job_id: str, decide: Decide) -> Change:
        """Give a finished job a new life; a unique one takes its lock first. Raises OjsError duplicate, or as `change`."""
        before, after = await self._unique.retry(job_id, decide)
        self.cache.drop(job_id)
        return Change(before, after)

    async def extend(self, job_ids: Sequence[str], worker: str, lease_ms: int | None) -> Extended:
        """Hold on to the active jobs among `job_ids` for `worker`; writes only those whose lease is half gone.

        All are read: the cache doesn't know what another gateway cancelled or the reaper ended, and where nothing is
        written, nothing would contradict it.
        """
        found = await self._records.many(job_ids)
        outcomes = await asyncio.gather(*(self._extend(job_id, found[job_id], worker, lease_ms) for job_id in job_ids))
        jobs = [job for job in outcomes if job is not None]
        return Extended(
            extended=[job.id for job in jobs if job.state is State.ACTIVE],
            cancelled=[job.id for job in jobs if job.state is State.CANCELLED],
            jobs=[job for job in jobs if job.state is State.ACTIVE],
        )

    async def _extend(self, job_id: str, current: Stored, worker: str, lease_ms: int | None) -> Job | None:
        """The job if the worker still holds it or it was cancelled, else None."""
        certain = False
        for tries in range(1, MAX_TRIES + 1):
            moment = self._clock.moment()
            try:
                if current.job is None:
                    raise not_found("job", job_id)
                transition = transitions.extend(current.job, worker, lease_ms, moment)
                if transition is None:
                    return current.job
                sequence = await self._committer.commit(transition, current.sequence, moment.op)
            except Conflict:
                await step_back(self._clock, tries)
                current, certain = await self._records.leader(job_id), True
            except OjsError as error:
                if error.code not in {"conflict", "not_found"}:
                    raise
                if certain:
                    self.cache.drop(job_id)
                    return current.job if current.job is not None and current.job.state is State.CANCELLED else None
                current, certain = await self._records.leader(job_id), True
            else:
                self._remember(sequence, transition.job)
                return transition.job
        raise _contended(job_id)

    async def wait_terminal(self, job_id: str, timeout_s: float) -> Job:
        """The job once it is terminal, or as it stands when the time is up. Raises OjsError not_found."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        changed = asyncio.Event()
        stop = await self._link.listen(self._config.job(job_id), lambda _message: changed.set())
        try:
            while True:
                changed.clear()
                job = await self.get(job_id)
                left = deadline - loop.time()
                if job.terminal or left <= 0:
                    return job
                try:
                    # The message is seen when it is sent, which may be just before it is stored; so never trust one wake.
                    await asyncio.wait_for(changed.wait(), min(left, _WATCH_PAUSE_S))
                    await asyncio.sleep(0.002)
                except TimeoutError:
                    pass
        finally:
            await stop()

    def _remember(self, sequence: int, job: Job) -> None:
        if job.state is State.ACTIVE:
            self.cache.put(sequence, job)
        else:
            self.cache.drop(job.id)


def _contended(job_id: str) -> OjsError:
    return OjsError(
        "backend_timeout",
        f"job {job_id} changed {MAX_TRIES} times while this request tried to change it; try again",
        retry_after=1,
    )
