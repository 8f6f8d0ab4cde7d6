"""The one way in for new jobs, in stages: admit, places, locks, commit, remember (docs/adr/004).

One job is a commit like any other, under its lock if it asks for one. Several are one atomic batch with their locks:
all of them or none (ojs-json-format §10).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Final, NamedTuple

from ojs_engine.base.errors import OjsError, duplicate, duplicate_in_batch, indexed
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.store.capacity.capacity import Capacity
from ojs_engine.store.capacity.storage_room import StorageRoom
from ojs_engine.store.gates import PushGate
from ojs_engine.store.jobs.jobs import Jobs, size_of
from ojs_engine.store.locks import JobLocks, Locate, LockPlan
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.atomic import Atomic, AtomicCommit
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.writer import Conflict, Write

_CHUNK: Final = 500

Push = Callable[[Job], Awaitable[Job]]


class _Plan(NamedTuple):
    """The writes of one try of a batch, and the jobs of its answer."""

    jobs: list[Job]
    commits: list[AtomicCommit]
    locks: list[Write]


class Enqueue:
    """Stores new jobs: those of clients and of features."""

    def __init__(
        self,
        bucket: Bucket,
        room: StorageRoom,
        queues: Queues,
        capacity: Capacity,
        atomic: Atomic,
        jobs: Jobs,
        gate: PushGate | None,
        locks: JobLocks | None,
    ) -> None:
        self._records = bucket.records
        self._committer = bucket.committer
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._batch_budget_s = bucket.writes.batch_budget_s
        self._room = room
        self._queues = queues
        self._capacity = capacity
        self._atomic = atomic
        self._pushed = jobs.pushed
        self._gate = gate
        self._locks = locks

    async def push(self, draft: Job) -> Job:
        """Store a new job with its hints. A lock that it asks for may have the answer be a job that is there.

        Raises OjsError duplicate if its id or its lock is taken, storage_full, and what its queue refuses.
        """
        self._room.check()
        draft = await self._queues.admit(draft)  # as `admit`, without its list: most pushes are of one job
        if self._gate is not None and self._gate.asks(draft):
            await self._gate.note([draft])
        if not self._queues.bound(draft.queue) or not transitions.waits_at_once(draft, self._clock.now()):
            return await self.store(draft)
        async with self._capacity.places(draft.queue, 1, partial(self._instead, draft)) as instead:
            return await self.store(draft) if instead is None else instead[0]

    async def push_all(self, drafts: Sequence[Job]) -> list[Job]:
        """Store all jobs, in their order, or none. A lock may have the answer for one be a job that is there.

        Raises OjsError duplicate, and what a queue refuses, with the `index` in its details; batch_size_exceeded,
        envelope_too_large, storage_full.
        """
        _check_ids(drafts)
        drafts = await self.admit(drafts, indexed)
        asking = self._asking(drafts)

        async def all_instead(dropping: bool) -> list[Job] | None:
            if not dropping and not asking:
                return None
            plan = await self._plan(drafts, await self._taken(drafts))
            return None if plan.commits else plan.jobs

        turns = nullcontext() if self._locks is None or not asking else self._locks.turns(asking)
        async with self._capacity.places_for(drafts, all_instead) as instead, turns:
            return await self._store_all(drafts) if instead is None else instead

    @asynccontextmanager
    async def place(self, draft: Job) -> AsyncIterator[tuple[Job, Push]]:
        """Hold the place that a job takes in its queue while something else is stored before it. Yield the job as it
        was admitted, and the function that pushes it then. No place is held for a duplicate.

        Raises OjsError storage_full, and what its queue refuses.
        """
        [draft] = await self.admit([draft], lambda error, _: error)

        async def instead(dropping: bool) -> list[Job] | None:
            try:
                return await self._instead(draft, dropping)
            except OjsError as error:
                if error.code != "duplicate":
                    raise
                return [draft]

        async with self._capacity.places_for([draft], instead) as found:
            yield draft, self.store if found is None else self.push

    @asynccontextmanager
    async def places(self, drafts: Sequence[Job], located: Locate) -> AsyncIterator[None]:
        """Hold the places of admitted jobs that are stored one by one.

        Raises OjsError queue_full; and duplicate, located, for the first of them whose lock is taken.
        """
        if self._locks is not None:
            await self._locks.check(drafts, located)
        async with self._capacity.places_for(drafts):
            yield

    # Stages

    async def admit(self, drafts: Sequence[Job], located: Locate) -> list[Job]:
        """Fill in what drafts leave to their queues, and show the gate those that ask for it.

        Raises OjsError storage_full; and what a queue refuses, located.
        """
        self._room.check()
        admitted: list[Job] = []
        for index, draft in enumerate(drafts):
            try:
                admitted.append(await self._queues.admit(draft))
            except OjsError as error:
                raise located(error, index) from None
        if self._gate is not None and (asking := [draft for draft in admitted if self._gate.asks(draft)]):
            await self._gate.note(asking)
        return admitted

    async def store(self, draft: Job) -> Job:
        """Store a job that was admitted and has its place. Returns and raises as `push`."""
        if self._locks is not None and self._locks.asks(draft):
            return await self._locks.store(draft)
        expected = 0
        async for _ in self._tries():
            try:
                moment = self._clock.moment()
                transition = transitions.push(draft, moment)
                sequence = await self._committer.commit(transition, expected, moment.op)
            except Conflict:
                found = await self._records.leader(draft.id)
                if found.job is not None:
                    raise await self._committer.taken(found, self._clock.now()) from None
                expected = found.sequence  # a marker or a tombstone
                draft = await self._records.continued(draft)
            else:
                if transition.job.state is State.AVAILABLE:
                    self._pushed.put(draft.id, Stored(sequence, transition.job), size_of(transition.job))
                return transition.job
        raise contended(f"job {draft.id}, or its uniqueness key,")

    async def store_each(self, drafts: Sequence[Job]) -> None:
        """Store admitted jobs that ask for no lock, each by itself, in order. Those that exist are left alone.

        Raises OjsError if some may be missing.
        """
        if not drafts:
            return
        moments = [self._clock.moment() for _ in drafts]
        outcomes = await self._committer.commit_all(
            [(transitions.push(draft, moment), 0, moment.op) for draft, moment in zip(drafts, moments, strict=True)]
        )
        failure = next((outcome for outcome in outcomes if isinstance(outcome, OjsError)), None)
        if failure is not None:
            raise failure

    async def _store_all(self, drafts: Sequence[Job]) -> list[Job]:
        expected: dict[str, int] = {}
        async for _ in self._tries(self._batch_budget_s):
            plan = await self._plan(drafts, expected)
            if not plan.commits:
                return plan.jobs
            try:
                await self._atomic.commit(plan.commits, plan.locks, len(drafts))
            except Conflict:
                expected = await self._taken(drafts)
                drafts = [await self._records.continued(draft) if draft.id in expected else draft for draft in drafts]
            else:
                return plan.jobs
        raise contended("what the batch depends on")

    # Jobs that are there

    async def _instead(self, draft: Job, dropping: bool) -> list[Job] | None:
        """Return the answer to a push to a full queue if the job won't be stored: then nothing is dropped for it, and
        it isn't refused for want of room. Raises OjsError duplicate.
        """
        locks = self._locks if self._locks is not None and self._locks.asks(draft) else None
        if not dropping and locks is None:
            return None
        found = await self._records.leader(draft.id)
        if found.job is not None:
            raise await self._committer.taken(found, self._clock.now())
        existing = None if locks is None else await locks.instead(draft)
        return None if existing is None else [existing]

    async def _taken(self, drafts: Sequence[Job]) -> dict[str, int]:
        """Return the revisions that creating each draft has to name. Raises OjsError duplicate for a taken id."""
        found = await self._records.many([draft.id for draft in drafts])
        expected: dict[str, int] = {}
        for index, draft in enumerate(drafts):
            stored = found[draft.id]
            if stored.sequence and not self._records.nearest_is_leader:
                stored = await self._records.leader(draft.id)
            if stored.job is not None:
                raise indexed(duplicate(draft.id, stored.job.state), index)
            if stored.sequence:
                expected[draft.id] = stored.sequence
        return expected

    # Batches

    def _asking(self, drafts: Sequence[Job]) -> list[Job]:
        """Return the drafts that ask for a lock."""
        return [] if self._locks is None else list(filter(self._locks.asks, drafts))

    async def _plan(self, drafts: Sequence[Job], expected: dict[str, int]) -> _Plan:
        asking = self._asking(drafts)
        locks = None if self._locks is None or not asking else await self._locks.plan(asking)
        plan = _Plan([], [], [])
        for index, draft in enumerate(drafts):
            try:
                plan.jobs.append(self._planned(plan, draft, locks, expected.get(draft.id, 0)))
            except OjsError as error:
                raise indexed(error, index) from None
            if index % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)
        return plan

    def _planned(self, plan: _Plan, draft: Job, locks: LockPlan | None, expected: int) -> Job:
        """Plan one member; return the job that is to be stored, or the existing one in its place."""
        if locks is None or self._locks is None or not self._locks.asks(draft):
            moment = self._clock.moment()
            plan.commits.append(AtomicCommit(transitions.push(draft, moment), expected, moment.op))
            return plan.commits[-1].transition.job
        found = locks.push(draft, plan.jobs, expected)
        if isinstance(found, Job):
            return found
        plan.commits.extend(found.commits)
        plan.locks.append(found.lock)
        return plan.commits[-1].transition.job


def _check_ids(drafts: Sequence[Job]) -> None:
    first: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        if first.setdefault(draft.id, index) != index:
            raise indexed(duplicate_in_batch(first[draft.id]), index)
