"""The one way in for new jobs, in stages: admit, places, locks, commit, remember (docs/adr/004).

One job is a commit like any other, after the swap of its lock if it is unique. Several are one atomic batch with
their locks: all of them or none (ojs-json-format §10).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

from ojs_engine.base.errors import OjsError, duplicate, duplicate_in_batch, indexed
from ojs_engine.base.portions import in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import UniquePolicy, policy_of
from ojs_engine.store.capacity.capacity import Capacity
from ojs_engine.store.capacity.storage_room import StorageRoom
from ojs_engine.store.gates import PushGate
from ojs_engine.store.jobs.jobs import Jobs, size_of
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.atomic import Atomic, AtomicCommit
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.writer import Conflict, Write
from ojs_engine.store.unique.unique import LockStanding, Uniqueness, existing_instead

_LOOKS: Final = 128
"""Locks read at a time."""
_CHUNK: Final = 500

Push = Callable[[Job], Awaitable[Job]]
Locate = Callable[[OjsError, int], OjsError]
"""The refusal of one of several jobs, with its place among them."""
_Standings = dict[tuple[str, UniquePolicy], LockStanding]


class _Plan(NamedTuple):
    """The writes of one try of a batch, and the jobs of its answer. `owners` are the members that take a lock."""

    jobs: list[Job]
    commits: list[AtomicCommit]
    locks: list[Write]
    owners: dict[str, int]


class Enqueue:
    """Stores new jobs: those of clients and of features."""

    def __init__(
        self,
        bucket: Bucket,
        room: StorageRoom,
        queues: Queues,
        capacity: Capacity,
        unique: Uniqueness,
        atomic: Atomic,
        jobs: Jobs,
        gate: PushGate | None = None,
    ) -> None:
        self._records = bucket.records
        self._committer = bucket.committer
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._batch_budget_s = bucket.writes.batch_budget_s
        self._room = room
        self._queues = queues
        self._capacity = capacity
        self._unique = unique
        self._atomic = atomic
        self._pushed = jobs.pushed
        self._gate = gate

    async def push(self, draft: Job) -> Job:
        """Store a new job with its hints; return the existing job if its uniqueness policy says to ignore duplicates.

        Raises OjsError duplicate if the id is taken or the job isn't unique, storage_full, and what its queue refuses.
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
        """Store all jobs, in their order, or none. Return the existing job in place of a draft whose uniqueness policy
        says to ignore duplicates.

        Raises OjsError duplicate, and what a queue refuses, with the `index` in its details; batch_size_exceeded,
        envelope_too_large, storage_full.
        """
        _check_ids(drafts)
        drafts = await self.admit(drafts, indexed)
        keys = {draft.unique_key for draft in drafts if draft.unique_key is not None}

        async def all_instead(dropping: bool) -> list[Job] | None:
            if not dropping and not keys:
                return None
            plan = await self._plan(drafts, await self._taken(drafts))
            return None if plan.commits else plan.jobs

        async with self._capacity.places_for(drafts, all_instead) as instead, self._unique.turns(keys):
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

        Raises OjsError queue_full; and duplicate, located, for the first of them that isn't unique.
        """
        owners: dict[str, Job] = {}
        for index, draft in enumerate(drafts):
            key = draft.unique_key
            if key is None or policy_of(draft).on_conflict != "reject":
                continue
            found = [owners[key]] if key in owners else (await self._unique.look(draft)).jobs()
            if found:
                raise located(duplicate(found[0].id, found[0].state, key), index)
            owners[key] = draft
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
        if draft.unique_key is None:
            return await self._store(draft, None)
        async with self._unique.turn(draft.unique_key):
            return await self._store(draft, self._unique.budget_s)

    async def _store(self, draft: Job, budget_s: float | None) -> Job:
        expected = 0
        async for _ in self._tries(budget_s):
            try:
                if draft.unique_key is not None:
                    return await self._unique.create(draft, expected)
                moment = self._clock.moment()
                transition = transitions.push(draft, moment)
                sequence = await self._committer.commit(transition, expected, moment.op)
            except Conflict:
                found = await self._records.leader(draft.id)
                if found.job is not None:
                    raise await self._committer.taken(found, self._clock.now()) from None
                expected = found.sequence  # a marker or a tombstone; the lock is swapped again before it is named
                draft = await self._records.continued(draft)
            else:
                if transition.job.state is State.AVAILABLE:
                    self._pushed.put(draft.id, Stored(sequence, transition.job), size_of(transition.job))
                return transition.job
        raise contended(f"job {draft.id}, or its uniqueness key,")

    async def store_each(self, drafts: Sequence[Job]) -> None:
        """Store admitted jobs that aren't unique, each by itself, in order. Those that exist are left alone.

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
        if not dropping and draft.unique_key is None:
            return None
        found = await self._records.leader(draft.id)
        if found.job is not None:
            raise await self._committer.taken(found, self._clock.now())
        existing = await self._unique.existing(draft)
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

    async def _plan(self, drafts: Sequence[Job], expected: dict[str, int]) -> _Plan:
        standings = await self._standings(drafts)
        plan = _Plan([], [], [], {})
        for index, draft in enumerate(drafts):
            try:
                plan.jobs.append(self._planned(plan, draft, standings, expected.get(draft.id, 0)))
            except OjsError as error:
                raise indexed(error, index) from None
            if index % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)
        return plan

    def _planned(self, plan: _Plan, draft: Job, standings: _Standings, expected: int) -> Job:
        """Plan one member; return the job that is to be stored, or the existing one in its place.

        Two unique ones of one batch exclude each other, since neither is there to be replaced.
        """
        key = draft.unique_key
        if key is None:
            moment = self._clock.moment()
            plan.commits.append(AtomicCommit(transitions.push(draft, moment), expected, moment.op))
            return plan.commits[-1].transition.job
        policy = policy_of(draft)
        standing = standings[key, policy]
        owner = plan.owners.get(key)
        if owner is not None and policy.on_conflict != "ignore":
            raise duplicate_in_batch(owner, key)
        existing = standing.jobs() if owner is None else [plan.jobs[owner]]
        if (instead := existing_instead(draft, existing)) is not None:
            return instead
        if any(job.id == draft.id for job in existing):
            raise duplicate(existing[0].id, existing[0].state, key)
        moment = self._clock.moment()
        plan.commits.extend(self._unique.replacement(draft, standing.duplicates, expected, moment))
        plan.locks.append(self._unique.claim(draft, standing, moment))
        plan.owners[key] = len(plan.jobs)
        return plan.commits[-1].transition.job

    async def _standings(self, drafts: Sequence[Job]) -> _Standings:
        """Read what each fingerprint's lock says to the policies of the drafts that have it."""
        first: dict[tuple[str, UniquePolicy], Job] = {}
        for draft in drafts:
            if draft.unique_key is not None:
                first.setdefault((draft.unique_key, policy_of(draft)), draft)
        free = await self._unique.free([key for key, _ in first]) if first else set()
        found: _Standings = {pair: LockStanding(0, None) for pair in first if pair[0] in free}
        pairs = [pair for pair in first if pair not in found]
        looks = await in_portions(pairs, lambda pair: self._unique.look(first[pair]), _LOOKS)
        return found | dict(zip(pairs, looks, strict=True))


def _check_ids(drafts: Sequence[Job]) -> None:
    first: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        if first.setdefault(draft.id, index) != index:
            raise indexed(duplicate_in_batch(first[draft.id]), index)
