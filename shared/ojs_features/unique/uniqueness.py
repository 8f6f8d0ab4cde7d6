"""Unique jobs: the lock of a fingerprint, and who may take it from whom (docs/adr/012).

`$KV.ojs.unique.<fingerprint>` names the job that holds the fingerprint and the op under which it took it. A lock never says
that a job exists, only whose record to look at; the records decide, read from the leader. Whoever wants the fingerprint
first swaps the lock, then writes its own record, in which the same op stands. So a lock whose op is not in its owner's record
belongs to somebody who is about to write that record, or died before: it is waited for, and past `LockTimings.young_ms`
fenced, by a write to that record which makes the other's fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from operator import attrgetter
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, duplicate, duplicate_in_batch
from ojs_engine.base.portions import in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.domain.unique import UniquePolicy, policy_of
from ojs_engine.store.locks import Decide, Locate, Locked
from ojs_engine.store.records.atomic import AtomicCommit
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.writer import Conflict, Write
from ojs_engine.store.store import Store
from ojs_features.unique.locks import REMEMBERED, Lock, Locks, encode_lock, settled
from ojs_features.unique.rules import counts, existing_instead
from ojs_features.unique.timings import LockTimings

log = structlog.get_logger(__name__)

_LEFT_ALONE: Final = frozenset({"reject", "ignore"})
"""What leaves duplicates as they are."""

_LOOKS: Final = 128
"""Locks read at a time."""


_Claimed = tuple[str, UniquePolicy]
"""A fingerprint, and a policy that asks for it."""


class LockStanding(NamedTuple):
    """What a fingerprint's lock and the records behind it said: its revision, the duplicates, and whom the next owner
    of the lock has to remember. `lock` is what is there, None for nothing.
    """

    sequence: int
    lock: Lock | None
    duplicates: tuple[Stored, ...] = ()
    also: tuple[str, ...] = ()

    def jobs(self, but: str = "") -> list[Job]:
        """The duplicates, without the job of one id."""
        return [stored.job for stored in self.duplicates if stored.job is not None and stored.job.id != but]


class Uniqueness:
    """Pushes and manual retries of unique jobs, and what becomes of their locks."""

    asks = attrgetter("unique_key")

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._timings = bucket.timings(LockTimings)
        self.budget_s = bucket.writes.budget_s + self._timings.young_ms / 1_000
        """A look at a lock whose owner died may wait as long as a lock is young."""
        self._records = bucket.records
        self._committer = bucket.committer
        self._writer = bucket.writer
        self._atomic = store.atomic
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.locks = Locks(bucket, self._timings)

    async def close(self) -> None:
        """Finish the releases of locks under way."""
        await self.locks.close()

    async def fenced(self, job_id: str) -> bool:
        """Return whether nothing but a fence is in the place of a job's record."""
        return await self.locks.fenced(job_id)

    # Taking

    async def store(self, draft: Job) -> Job:
        """Store a new unique job; return the existing one if its policy says to ignore duplicates.

        Raises OjsError duplicate.
        """
        assert draft.unique_key is not None
        expected = 0
        async with self.turn(draft.unique_key):
            async for _ in self._tries(self.budget_s):
                try:
                    return await self._create(draft, expected)
                except Conflict:
                    found = await self._records.leader(draft.id)
                    if found.job is not None:
                        raise await self._committer.taken(found, self._clock.now()) from None
                    expected = found.sequence  # a marker or a tombstone; the lock is swapped again before it is named
                    draft = await self._records.continued(draft)
        raise contended(f"job {draft.id}, or its uniqueness key,")

    async def _create(self, draft: Job, expected: int) -> Job:
        """Try once to store a new unique job over the revision `expected` (0: none), which was read before; returns the
        existing one instead if the policy says `ignore`. The caller has the turn of its fingerprint.

        Raises OjsError duplicate; Conflict, of the lock or the record.
        """
        standing = await self.look(draft)
        moment = self._clock.moment()
        for stored in standing.duplicates:
            if stored.job is not None and stored.job.id == draft.id:
                raise await self._committer.taken(stored, moment.now)
        instead = existing_instead(draft, standing.jobs())
        if instead is not None:
            return instead
        if not standing.duplicates:
            return await self._under_lock(transitions.push(draft, moment), standing, expected, moment)
        commits = self.replacement(draft, standing.duplicates, expected, moment)
        await self._atomic.commit(commits, [self.claim(draft, standing, moment)])
        return commits[-1].transition.job

    async def instead(self, draft: Job) -> Job | None:
        """Return the job that a push would be answered with now instead of being stored. Raises OjsError duplicate."""
        if policy_of(draft).on_conflict not in _LEFT_ALONE:
            return None
        return existing_instead(draft, (await self.look(draft)).jobs())

    async def check(self, drafts: Sequence[Job], located: Locate) -> None:
        """Raises OjsError duplicate, located, for the first of some jobs that will be refused as a duplicate."""
        owners: dict[str, Job] = {}
        for index, draft in enumerate(drafts):
            key = draft.unique_key
            if key is None or policy_of(draft).on_conflict != "reject":
                continue
            found = [owners[key]] if key in owners else (await self.look(draft)).jobs()
            if found:
                raise located(duplicate(found[0].id, found[0].state, key), index)
            owners[key] = draft

    async def revive(self, found: Stored, decided: Job, decide: Decide) -> Job:
        """Give a finished job a new life as `decide` says, which has made `decided` of it; the lock comes first.

        Raises OjsError duplicate if another job has its fingerprint by now; Conflict, of the lock or the record.
        """
        key = decided.unique_key
        assert found.job is not None
        assert key is not None
        async with self.turn(key):
            standing = await self.look(decided)
            if others := standing.jobs(but=decided.id):
                raise duplicate(others[0].id, others[0].state, key)
            moment = self._clock.moment()  # the look may have taken seconds
            return await self._under_lock(decide(found.job, moment), standing, found.sequence, moment)

    async def plan(self, drafts: Sequence[Job]) -> UniquePlan:
        """Read what each fingerprint's lock says to the policies of unique jobs that have it."""
        first: dict[_Claimed, Job] = {}
        for draft in drafts:
            assert draft.unique_key is not None
            first.setdefault((draft.unique_key, policy_of(draft)), draft)
        free = await self._free([key for key, _ in first]) if first else set()
        found: dict[_Claimed, LockStanding] = {pair: LockStanding(0, None) for pair in first if pair[0] in free}
        pairs = [pair for pair in first if pair not in found]
        looks = await in_portions(pairs, lambda pair: self.look(first[pair]), _LOOKS)
        return UniquePlan(self, found | dict(zip(pairs, looks, strict=True)))

    async def _under_lock(self, transition: Transition, standing: LockStanding, expected: int, moment: Moment) -> Job:
        """The lock, then the record, which carries its op: the job as stored. Raises Conflict, of either.

        A lock whose record is refused is given back: left as it is, all others of the fingerprint would wait to fence
        it.
        """
        claim = self.claim(transition.job, standing, moment)
        sequence = await self._writer.write(claim)
        transition = replace(transition, job=replace(transition.job, lock=moment.op))
        try:
            await self._committer.commit(transition, expected, moment.op)
        except (Conflict, OjsError) as error:
            # Only an answer that didn't come leaves it open whether the record is stored.
            if isinstance(error, Conflict) or error.code != "backend_unavailable":
                await self._give_back(sequence, claim, standing)
            raise
        return transition.job

    def replacement(self, draft: Job, duplicates: Sequence[Stored], expected: int, moment: Moment) -> list[AtomicCommit]:
        """The cancellation of every duplicate that lives, and the push of the job that takes their place, which comes
        last.

        It keeps the schedule of a scheduled one if its policy is `replace_except_schedule`.
        """
        commits: list[AtomicCommit] = []
        for sequence, job in duplicates:
            if job is None or job.terminal:
                continue
            ending = self._clock.moment()
            commits.append(AtomicCommit(transitions.cancel(job, ending, f"replaced by job {draft.id}"), sequence, ending.op))
            if policy_of(draft).on_conflict == "replace_except_schedule" and job.state is State.SCHEDULED:
                draft = _scheduled_as(draft, job)
        birth = transitions.push(replace(draft, lock=moment.op), moment)
        return [*commits, AtomicCommit(birth, expected, moment.op)]

    def moment(self) -> Moment:
        """Return the moment of a write."""
        return self._clock.moment()

    def turn(self, key: str) -> asyncio.Lock:
        """Within a process one at a time works on a fingerprint: the others would only cause conflicts."""
        turn = self._turns.get(key)
        if turn is None:
            self._turns[key] = turn = asyncio.Lock()
        return turn

    @asynccontextmanager
    async def turns(self, drafts: Sequence[Job]) -> AsyncIterator[None]:
        """Have the turns of the fingerprints of jobs; in one order for all, or two would wait for each other."""
        async with AsyncExitStack() as held:
            for key in sorted({draft.unique_key for draft in drafts if draft.unique_key is not None}):
                await held.enter_async_context(self.turn(key))
            yield

    # The lock

    async def look(self, claimant: Job) -> LockStanding:
        """Find out for certain who holds a unique job's fingerprint: an owner that is about to write its record is
        waited for, or fenced.

        For policies that leave duplicates alone, an existing one is enough to know.
        """
        key, policy = claimant.unique_key, policy_of(claimant)
        assert key is not None
        pause = self._timings.first_pause_s
        while True:
            sequence, lock = await self.locks.read(key)
            if lock is None:
                return LockStanding(sequence, None)
            found = await self.locks.jobs([lock.owner, *lock.also])
            now = self._clock.now()
            duplicates = tuple(
                stored for stored in found.values() if stored.job is not None and counts(policy, key, stored.job, now)
            )
            standing = LockStanding(sequence, lock, duplicates, _remembered(found, key, policy, now, claimant.id))
            owner = found[lock.owner]
            if lock.owner == claimant.id or settled(owner.job, key, lock):
                return standing
            if duplicates and policy.on_conflict in _LEFT_ALONE:
                return standing
            if owner.job is None and await self.locks.owner_deleted(key, lock):
                return standing
            if now - lock.at >= self._timings.young_ms:
                if await self.locks.fence(lock.owner, owner):
                    log.info("an unfinished push or retry of a unique job was fenced", job_id=lock.owner)
                    return standing
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, self._timings.last_pause_s)

    async def _free(self, keys: Sequence[str]) -> set[str]:
        """Those of the fingerprints that nobody holds: one read for many, where a replica's word is as good as the leader's."""
        if not self._records.nearest_is_leader:
            return set()
        subjects = {key: self.locks.documents.subject(key) for key in keys}
        held = await self._records.many_raw(list(subjects.values()))
        return {key for key, subject in subjects.items() if subject not in held}

    def claim(self, job: Job, standing: LockStanding, moment: Moment) -> Write:
        """Return the write that makes a unique job the owner. Its record has to carry `moment.op` as `lock`, and may
        name as expected only a revision that was read before this write: that is what fencing relies on.
        """
        assert job.unique_key is not None
        lock = Lock(job.id, moment.op, moment.now, standing.also)
        return self.locks.documents.as_write(job.unique_key, lock, standing.sequence, moment.op)

    async def _give_back(self, sequence: int, claim: Write, standing: LockStanding) -> None:
        """Undo a claim, by its sequence, whose record was refused. If that fails, the next push sees to it."""
        before, let_go_s = standing.lock, self._timings.let_go_s
        body, ttl_s = (claim.body, let_go_s) if before is None else (encode_lock(before), None)
        undo = Write(claim.subject, body, sequence, lambda found: found == body, ttl_s=ttl_s)
        try:
            await self._writer.write(undo)
        except (Conflict, OjsError):
            log.debug("a lock was not given back")


class UniquePlan:
    """The unique jobs of one batch, which are stored together with their locks."""

    def __init__(self, uniqueness: Uniqueness, standings: dict[_Claimed, LockStanding]) -> None:
        self._uniqueness = uniqueness
        self._standings = standings
        self._places: dict[str, int] = {}
        """The new jobs that take a fingerprint, by their places."""
        self._revived: dict[str, Job] = {}
        """The same of jobs that begin a new life."""

    def push(self, draft: Job, before: Sequence[Job], expected: int) -> Job | Locked:
        """Plan a new job, or return the existing one in its place. Raises OjsError duplicate.

        Two of one fingerprint exclude each other in a batch, since neither is there to be replaced.
        """
        key, policy = draft.unique_key, policy_of(draft)
        assert key is not None
        standing = self._standings[key, policy]
        owner = self._places.get(key)
        if owner is not None and policy.on_conflict != "ignore":
            raise duplicate_in_batch(owner, key)
        existing = standing.jobs() if owner is None else [before[owner]]
        if (instead := existing_instead(draft, existing)) is not None:
            return instead
        if any(job.id == draft.id for job in existing):
            raise duplicate(existing[0].id, existing[0].state, key)
        moment = self._uniqueness.moment()
        commits = self._uniqueness.replacement(draft, standing.duplicates, expected, moment)
        self._places[key] = len(before)
        return Locked(commits, self._uniqueness.claim(draft, standing, moment))

    async def revive(self, found: Stored, decided: Transition, moment: Moment) -> Locked:
        """Plan the new life of a finished job. Raises OjsError duplicate."""
        job, key = decided.job, decided.job.unique_key
        assert key is not None
        standing = await self._uniqueness.look(job)
        if others := [self._revived[key]] if key in self._revived else standing.jobs(but=job.id):
            raise duplicate(others[0].id, others[0].state, key)
        self._revived[key] = job
        revived = replace(decided, job=replace(job, lock=moment.op))
        lock = self._uniqueness.claim(revived.job, standing, moment)
        return Locked([AtomicCommit(revived, found.sequence, moment.op)], lock)


def _scheduled_as(draft: Job, planned: Job) -> Job:
    verbatim = {name: text for name, text in draft.verbatim.items() if name != "scheduled_at"}
    if "scheduled_at" in planned.verbatim:
        verbatim["scheduled_at"] = planned.verbatim["scheduled_at"]
    return replace(draft, scheduled_at=planned.scheduled_at, verbatim=verbatim)


def _remembered(found: dict[str, Stored], key: str, policy: UniquePolicy, now: int, claimant: str) -> tuple[str, ...]:
    """The jobs behind a lock that can be duplicates of later ones: those that live, and those that count though finished."""
    jobs = [stored.job for stored in found.values() if stored.job is not None and stored.job.unique_key == key]
    kept = [job.id for job in jobs if job.id != claimant and (not job.terminal or counts(policy, key, job, now))]
    return tuple(kept[:REMEMBERED])
