"""Jobs: read, change. Read, decide (pure), swap; on a conflict read again and decide anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.base.lru import Lru
from ojs_engine.base.waiting import within
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions.result import Change, Moment, Transition
from ojs_engine.store.locks import JobLocks
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.turns import Turns
from ojs_engine.store.records.writer import Conflict
from ojs_link.timings import Timings

_BEFORE_A_TURN: Final = 2
"""Conflicts of one change before it waits for the others of this process at the same job."""

_REMEMBERED_BYTES: Final = 64 * 1024 * 1024
_PUSHED_BYTES: Final = 4 * 1024 * 1024
"""For jobs that are fetched from the process to which they were pushed, soon: their claims need no read."""
_RECORD_BYTES: Final = 2_000
"""What a job takes beside its arguments and metadata."""

DecideJob = Callable[[Job, Moment], Transition]


class JobTimings(Timings, frozen=True, kw_only=True):
    """How often the end of a job is checked by a request that waits for it."""

    look_s: float = 1.0
    """Between two checks though nothing was heard of the job."""
    settling_s: float = 0.002
    """A record's message is seen when it is sent, which may be just before it is stored: the check waits so long."""


class Extended(Struct, frozen=True):
    """What a heartbeat did: the ids it holds on to, the ids it lost to a cancellation, and the jobs it holds."""

    extended: list[str]
    cancelled: list[str]
    jobs: list[Job]


class Jobs:
    """Reads of jobs, and all their changes but claims."""

    def __init__(self, bucket: Bucket, locks: JobLocks | None, timings: JobTimings) -> None:
        self._timings = timings
        self._nats = bucket.nats
        self._records = bucket.records
        self._committer = bucket.committer
        self._locks = locks
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._config = bucket.config
        self._turns = Turns(bucket.writes.turn_s)
        self.cache: Lru[Stored] = Lru(_REMEMBERED_BYTES)
        """The records of jobs that this process handed out, so that their ack needs no read."""
        self.pushed: Lru[Stored] = Lru(_PUSHED_BYTES)
        """The records of jobs as this process has pushed them."""

    def take_pushed(self, job_id: str) -> Stored | None:
        """The record of a job as this process has pushed it, once; it may have changed since, as its revision will show."""
        found = self.pushed.get(job_id)
        self.pushed.drop(job_id)
        return found

    async def get(self, job_id: str) -> Job:
        """The job as the leader has it. Raises OjsError not_found."""
        found = await self._records.leader(job_id)
        if found.job is None:
            raise not_found("job", job_id)
        return found.job

    async def change(self, job_id: str, decide: DecideJob) -> Change:
        """Apply a pure decision to a job.

        The first try takes the cached or nearest record; a refusal, or an absence, counts only on the leader's word.
        Raises OjsError not_found, or whatever `decide` raises.
        """
        try:
            return await self._changed(job_id, decide, most_conflicts=_BEFORE_A_TURN)
        except Conflict:
            async with self._turns.turn(job_id):
                return await self._changed(job_id, decide, most_conflicts=None)

    async def _changed(self, job_id: str, decide: DecideJob, *, most_conflicts: int | None) -> Change:
        """As `change`; raises Conflict after `most_conflicts`, None for as many as there is time for."""
        current = self.cache.get(job_id)
        certain = current is None and self._records.nearest_is_leader
        if current is None:
            current = await self._records.nearest(job_id)
        conflicts = 0
        async for _ in self._tries():
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
                conflicts += 1
                if conflicts == most_conflicts:
                    self.cache.drop(job_id)
                    raise
                current, certain = await self._records.leader(job_id), True
                continue
            self.remember(sequence, transition.job)
            return Change(before, transition.job)
        raise contended(f"job {job_id}")

    async def revive(self, job_id: str, decide: DecideJob) -> Change:
        """Give a finished job a new life, under its lock if it asks for one. Raises OjsError duplicate, or as `change`."""
        locks = self._locks
        async for _ in self._tries(None if locks is None else locks.budget_s):
            found = await self._records.leader(job_id)
            if found.job is None:
                raise not_found("job", job_id)
            moment = self._clock.moment()
            transition = decide(found.job, moment)
            try:
                if locks is not None and found.job.terminal and locks.asks(transition.job):
                    after = await locks.revive(found, transition.job, decide)
                else:
                    await self._committer.commit(transition, found.sequence, moment.op)
                    after = transition.job
            except Conflict:
                continue
            self.cache.drop(job_id)
            return Change(found.job, after)
        raise contended(f"the uniqueness key of job {job_id}")

    async def extend(self, job_ids: Sequence[str], worker: str | None, lease_ms: int | None) -> Extended:
        """Hold on to the active jobs among `job_ids` for `worker`, None for whoever has them; writes only those whose
        lease is half gone.

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

    async def _extend(self, job_id: str, current: Stored, worker: str | None, lease_ms: int | None) -> Job | None:
        """The job if the worker still holds it or it was cancelled, else None."""
        certain = False
        async for _ in self._tries():
            moment = self._clock.moment()
            try:
                if current.job is None:
                    raise not_found("job", job_id)
                transition = transitions.extend(current.job, worker, lease_ms, moment)
                if transition is None:
                    return current.job
                sequence = await self._committer.commit(transition, current.sequence, moment.op)
            except Conflict:
                current, certain = await self._records.leader(job_id), True
            except OjsError as error:
                if error.code not in {"conflict", "not_found"}:
                    raise
                if certain:
                    self.cache.drop(job_id)
                    return current.job if current.job is not None and current.job.state is State.CANCELLED else None
                current, certain = await self._records.leader(job_id), True
            else:
                self.remember(sequence, transition.job)
                return transition.job
        raise contended(f"job {job_id}")

    async def wait_terminal(self, job_id: str, timeout_s: float, given_up: Callable[[], bool] = lambda: False) -> Job:
        """Return the job once it is terminal, or as it stands when the time is up or `given_up` says so.

        That is asked about every second. Raises OjsError not_found.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        changed = asyncio.Event()
        stop = await self._nats.listen(self._config.job(job_id), lambda _message: changed.set())
        try:
            while True:
                changed.clear()
                job = await self.get(job_id)
                left = deadline - loop.time()
                if job.terminal or left <= 0 or given_up():
                    return job
                if await within(min(left, self._timings.look_s), changed):
                    await asyncio.sleep(self._timings.settling_s)  # and never trust one wake
        finally:
            await stop()

    def holds(self, job_id: str) -> bool:
        """Whether this process has handed the job out and has heard of no end of that attempt. It may have ended elsewhere."""
        return self.cache.get(job_id) is not None

    def remember(self, sequence: int, job: Job) -> None:
        """Keep the record of a job that this process has handed out; one that is over is forgotten."""
        if job.state is State.ACTIVE:
            self.cache.put(job.id, Stored(sequence, job), size_of(job))
        else:
            self.cache.drop(job.id)

    def forget(self) -> None:
        """Whatever was kept is gone."""
        self.cache.clear()
        self.pushed.clear()


def size_of(job: Job) -> int:
    """About what a record takes of the memory (bytes)."""
    return len(memoryview(job.args)) + len(memoryview(job.meta)) + _RECORD_BYTES
