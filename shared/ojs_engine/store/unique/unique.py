"""Unique jobs: the lock of a fingerprint, and who may take it from whom (docs/adr/012).

`$KV.ojs.unique.<fingerprint>` names the job that holds the fingerprint and the op under which it took it. A lock never says
that a job exists, only whose record to look at; the records decide, read from the leader. Whoever wants the fingerprint
first swaps the lock, then writes its own record, in which the same op stands. So a lock whose op is not in its owner's record
belongs to somebody who is about to write that record, or died before: it is waited for, and past `LockTimings.young_ms`
fenced, by a write to that record which makes the other's fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple, assert_never
from weakref import WeakValueDictionary

import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, duplicate, not_found
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.domain.unique import UniquePolicy, counts, policy_of
from ojs_engine.store.records.atomic import Atomic, AtomicCommit
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.writer import Conflict, Write
from ojs_engine.store.unique.locks import REMEMBERED, Lock, Locks, LockTimings, encode_lock, settled

log = structlog.get_logger(__name__)

_LEFT_ALONE: Final = frozenset({"reject", "ignore"})
"""What leaves duplicates as they are."""

DecideUnique = Callable[[Job, Moment], Transition]


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

    def __init__(self, bucket: Bucket, atomic: Atomic, timings: LockTimings) -> None:
        self._timings = timings
        self.budget_s = bucket.writes.budget_s + timings.young_ms / 1_000
        """A look at a lock whose owner died may wait as long as a lock is young."""
        self._records = bucket.records
        self._committer = bucket.committer
        self._writer = bucket.writer
        self._atomic = atomic
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._config = bucket.config
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.locks = Locks(bucket, timings)

    # Taking

    async def create(self, draft: Job, expected: int) -> Job:
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

    async def existing(self, draft: Job) -> Job | None:
        """The job that a push of `draft` would be answered with now instead of being stored. Raises OjsError duplicate."""
        if draft.unique_key is None or policy_of(draft).on_conflict not in _LEFT_ALONE:
            return None
        return existing_instead(draft, (await self.look(draft)).jobs())

    async def retry(self, job_id: str, decide: DecideUnique) -> tuple[Job, Job]:
        """Give a finished job a new life: what it was and what it is. It takes the lock first.

        Raises OjsError duplicate if another job has its fingerprint by now, not_found, or whatever `decide` raises.
        """

        async def attempt() -> tuple[Job, Job]:
            found = await self._records.leader(job_id)
            if found.job is None:
                raise not_found("job", job_id)
            moment = self._clock.moment()
            transition = decide(found.job, moment)
            key = transition.job.unique_key
            if key is None or not found.job.terminal:
                await self._committer.commit(transition, found.sequence, moment.op)
                return found.job, transition.job
            async with self.turn(key):
                standing = await self.look(transition.job)
                if others := standing.jobs(but=job_id):
                    raise duplicate(others[0].id, others[0].state, key)
                moment = self._clock.moment()  # the look may have taken seconds
                transition = decide(found.job, moment)
                return found.job, await self._under_lock(transition, standing, found.sequence, moment)

        async for _ in self._tries(self.budget_s):
            try:
                return await attempt()
            except Conflict:
                continue
        raise contended(f"the uniqueness key of job {job_id}")

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

    def turn(self, key: str) -> asyncio.Lock:
        """Within a process one at a time works on a fingerprint: the others would only cause conflicts."""
        turn = self._turns.get(key)
        if turn is None:
            self._turns[key] = turn = asyncio.Lock()
        return turn

    @asynccontextmanager
    async def turns(self, keys: Collection[str]) -> AsyncIterator[None]:
        """Have the turns of several fingerprints; in one order for all, or two would wait for each other."""
        async with AsyncExitStack() as held:
            for key in sorted(keys):
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

    async def free(self, keys: Sequence[str]) -> set[str]:
        """Those of the fingerprints that nobody holds: one read for many, where a replica's word is as good as the leader's."""
        if not self._records.nearest_is_leader:
            return set()
        subjects = {key: self._config.unique(key) for key in keys}
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


def existing_instead(draft: Job, existing: Sequence[Job]) -> Job | None:
    """The existing job that a push is answered with, None if the draft is to be stored. Raises OjsError duplicate."""
    on_conflict = policy_of(draft).on_conflict
    if not existing:
        return None
    match on_conflict:
        case "reject":
            raise duplicate(existing[0].id, existing[0].state, draft.unique_key)
        case "ignore":
            return existing[0]
        case "replace" | "replace_except_schedule":
            return None
        case unknown:
            assert_never(unknown)


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
