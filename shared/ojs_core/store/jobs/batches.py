"""Batch pushes: many jobs or none (ojs-json-format §10). Unique members take their locks in the same batch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ojs_core.base.errors import OjsError, duplicate, duplicate_in_batch, indexed
from ojs_core.base.portions import in_portions
from ojs_core.domain import transitions
from ojs_core.domain.job import Job
from ojs_core.domain.unique import UniquePolicy, policy_of
from ojs_core.jetstream.clock import ServerClock
from ojs_core.store.capacity.capacity import Superfluous
from ojs_core.store.jobs.guards import Guards
from ojs_core.store.records.atomic import Atomic, AtomicCommit
from ojs_core.store.records.backoff import contended, tries
from ojs_core.store.records.bucket import Bucket
from ojs_core.store.records.writer import Conflict, Write
from ojs_core.store.unique.unique import LockStanding, Uniqueness

_BUDGET_S: Final = 8.0
"""Members that others fight for through many gateways meet many conflicts."""
_LOOKS: Final = 128
"""Locks read at a time."""
_CHUNK: Final = 500

_Standings = dict[tuple[str, UniquePolicy], LockStanding]


class Batches:
    """Pushes several jobs at once."""

    def __init__(self, bucket: Bucket, guards: Guards, atomic: Atomic) -> None:
        self._records = bucket.records
        self._room = guards.room
        self._queues = guards.queues
        self._capacity = guards.capacity
        self._permits = guards.permits
        self._unique = guards.unique
        self._atomic = atomic
        self._clock = bucket.clock

    async def push(self, drafts: Sequence[Job]) -> list[Job]:
        """Store all jobs, in their order, or none. An existing job takes the place of a draft that it makes superfluous
        (unique policy `ignore`).

        Raises OjsError duplicate, or whatever its queue refuses a job for, with the `index` in its details;
        batch_size_exceeded, envelope_too_large, storage_full.
        """
        self._room.check()
        _check_ids(drafts)
        drafts = await self._admitted(drafts)
        await self._permits.note(drafts)
        keys = {draft.unique_key for draft in drafts if draft.unique_key is not None}

        async def check(dropping: bool) -> None:
            if dropping or keys:
                plan = await self._plan(drafts, await self._taken(drafts))
                if not plan.commits:
                    raise Superfluous(plan.jobs)

        try:
            async with (
                self._capacity.places_for(drafts, check),
                self._unique.turns(keys),
            ):
                return await self._push(drafts)
        except Superfluous as found:
            return list(found.jobs)

    async def _plan(self, drafts: Sequence[Job], expected: dict[str, int]) -> _Plan:
        plan = _Plan(self._clock, self._unique, expected)
        await plan.draw(drafts, await self._standings(drafts))
        return plan

    async def _push(self, drafts: Sequence[Job]) -> list[Job]:
        expected: dict[str, int] = {}
        async for _ in tries(self._clock, _BUDGET_S):
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

    async def _admitted(self, drafts: Sequence[Job]) -> list[Job]:
        admitted = []
        for index, draft in enumerate(drafts):
            try:
                admitted.append(await self._queues.admit(draft))
            except OjsError as error:
                raise indexed(error, index) from None
        return admitted

    async def _standings(self, drafts: Sequence[Job]) -> _Standings:
        """What each fingerprint's lock says to the policies of the drafts that have it."""
        first: dict[tuple[str, UniquePolicy], Job] = {}
        for draft in drafts:
            if draft.unique_key is not None:
                first.setdefault((draft.unique_key, policy_of(draft)), draft)
        free = await self._unique.free([key for key, _ in first]) if first else set()
        found: _Standings = {pair: LockStanding(0, None) for pair in first if pair[0] in free}
        pairs = [pair for pair in first if pair not in found]
        looks = await in_portions(pairs, lambda pair: self._unique.look(*pair, first[pair].id), _LOOKS)
        return found | dict(zip(pairs, looks, strict=True))

    async def _taken(self, drafts: Sequence[Job]) -> dict[str, int]:
        """After a conflict: the revisions that creating each draft has to name. Raises OjsError duplicate for a taken id."""
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


class _Plan:
    """What one try of a batch writes, and the jobs that it answers with."""

    def __init__(self, clock: ServerClock, unique: Uniqueness, expected: dict[str, int]) -> None:
        self._clock = clock
        self._unique = unique
        self._expected = expected
        self._owners: dict[str, Job] = {}
        self._places: dict[str, int] = {}
        self.commits: list[AtomicCommit] = []
        self.locks: list[Write] = []
        self.jobs: list[Job] = []

    async def draw(self, drafts: Sequence[Job], standings: _Standings) -> None:
        for index, draft in enumerate(drafts):
            key = draft.unique_key
            try:
                self.jobs.append(
                    self._plain(draft) if key is None else self._singular(index, draft, key, standings[key, policy_of(draft)])
                )
            except OjsError as error:
                raise indexed(error, index) from None
            if index % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)

    def _plain(self, draft: Job) -> Job:
        moment = self._clock.moment()
        commit = AtomicCommit(transitions.push(draft, moment), self._expected.get(draft.id, 0), moment.op)
        self.commits.append(commit)
        return commit.transition.job

    def _singular(self, index: int, draft: Job, key: str, standing: LockStanding) -> Job:
        """A unique member. Two of one batch exclude each other, since neither is there to be replaced."""
        on_conflict = policy_of(draft).on_conflict
        existing = [self._owners[key]] if key in self._owners else standing.jobs()
        if existing:
            if on_conflict == "ignore":
                return existing[0]
            if key in self._owners:
                raise duplicate_in_batch(self._places[key], key)
            if on_conflict == "reject" or any(job.id == draft.id for job in existing):
                raise duplicate(existing[0].id, existing[0].state, key)
        moment = self._clock.moment()
        expected = self._expected.get(draft.id, 0)
        commits = self._unique.replacement(draft, standing.duplicates, expected, moment)
        self.commits += commits
        self.locks.append(self._unique.claim(key, standing, draft.id, moment))
        self._owners[key] = commits[-1].transition.job
        self._places[key] = index
        return commits[-1].transition.job


def _check_ids(drafts: Sequence[Job]) -> None:
    first: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        if first.setdefault(draft.id, index) != index:
            raise indexed(duplicate_in_batch(first[draft.id]), index)
