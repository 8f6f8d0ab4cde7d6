"""Between a token and its claim: the limits of keys and queues (ojs-rate-limiting §6, §8; docs/adr/014).

A job whose key has no permit left steps aside, so that others of its queue go on. A queue's own limit, from its
configuration or from jobs that name no key, stops the queue: its tokens go back in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from ojs_engine.base.errors import OjsError
from ojs_engine.base.portions import in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.domain.rate_limits.policy import LimitPolicy, policy_of, policy_of_queue
from ojs_engine.store.capacity.stale_tokens import available_at
from ojs_engine.store.gates import FREE, Asks, Candidate, QueueGate, Room, Start, Verdict, Verdicts
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.tokens import Tokens, read_token
from ojs_features.limits.asking import limited
from ojs_features.limits.blocked_jobs import BlockedJob, BlockedJobs
from ojs_features.limits.permits import Permit, PermitClaim, Permits, PermitsTaken, key_scope, queue_scope
from ojs_features.limits.rules import Grant, Hit
from ojs_features.limits.subjects import Subjects
from ojs_link.timings import Timings

_AT_ONCE: Final = 8
"""Keys whose jobs are turned away together. Whoever fetches meanwhile waits for the work of as many, over and over."""


class LimiterTimings(Timings, frozen=True, kw_only=True):
    """For how long jobs of limits are put off."""

    postponed_ms: int = 1_000
    """For how long a job is rescheduled when it isn't known when its limit will have room."""
    unknown_ms: int = 30_000
    """The same, when the record of its limit can't be read."""


class Permitted(Start, frozen=True):
    """Leave to start, with what limits have granted for it. Its time is that of the last grant, as every limit counts
    it. Its permits are those of limits that count the job until it ends.
    """

    granted: tuple[Permit, ...] = ()


class QueueLimit:
    """The limit of a queue's settings."""

    def __init__(self, limiter: Limiter, policy: LimitPolicy) -> None:
        self._limiter = limiter
        self.policy = policy

    async def room(self, queue: str) -> Room:
        return await self._limiter.room(queue, self.policy)


class Limiter:
    """Limits as a gate of what is fetched (`StartGate`)."""

    def __init__(self, permits: Permits, blocked: BlockedJobs, bucket: Bucket, timings: LimiterTimings) -> None:
        self.asks: Asks = limited
        self._timings = timings
        self._permits = permits
        self._blocked = blocked
        self._clock = bucket.clock
        self._subjects = Subjects(bucket.config)
        self._records = bucket.records
        self._tokens = Tokens(bucket.nats, bucket.bulk, bucket.config)

    def of_queue(self, config: QueueConfig) -> QueueLimit | None:
        """Return the limit of a queue's settings."""
        policy = policy_of_queue(config)
        return None if policy is None else QueueLimit(self, policy)

    async def room(self, queue: str, policy: LimitPolicy) -> Room:
        """Return how many jobs a queue's own limit lets start now."""
        found = await self._permits.room(queue_scope(queue), policy)
        return Room(found.number, None if found.hit is None else partial(self._stopped, queue, found.hit))

    async def _stopped(self, queue: str, hit: Hit) -> None:
        """Note that jobs of the queue wait although they were asked for, because of its own limit."""
        await self._blocked.stopped(queue_scope(queue), queue, hit)

    async def emptied(self, queue: str, last: str | None) -> None:
        """Note that a fetch has got all that the queue had, its own limit notwithstanding; `last` is its last job."""
        await self._blocked.freed(queue_scope(queue), queue, last)

    async def held(self, jobs: Sequence[Job], grace_ms: int) -> set[str]:
        """Return the ids of those jobs that became available behind the first that waits for a permit of their key.
        Tokens that are held are in order, too.
        """
        since: dict[tuple[str, int], float] = {}
        found: set[str] = set()
        for job in jobs:
            policy = policy_of(job)
            if policy is None or policy.key is None:
                continue
            which = (key_scope(policy.key), job.priority)
            if which not in since:
                since[which] = await self._held_since(job.queue, *which) - grace_ms
            if available_at(job) >= since[which]:
                found.add(job.id)
        return found

    async def _held_since(self, queue: str, scope: str, priority: int) -> float:
        """Return when the first blocked job became available: infinity if there is none, 0 if that isn't known.

        The scheduler gets a note for the limit: that note may be what was lost.
        """
        subjects = [self._subjects.hold(scope, priority, queue, front=front) for front in (True, False)]
        first = [said for subject in subjects if (said := await self._tokens.first(subject)) is not None]
        if not first:
            return math.inf
        await self._permits.send_note(scope)
        stored = [await self._records.leader_for_hint(job_id) for said in first if (job_id := _job_of(said)) is not None]
        times = [available_at(one.job) for one in stored if one.job is not None]
        return 0 if len(times) < len(first) else min(times)

    def held_under(self, job: Job) -> str | None:
        """Return where tokens of the job's key wait for a permit; None if it names no key."""
        policy = policy_of(job)
        return None if policy is None or policy.key is None else self._subjects.held_of(job.queue, key_scope(policy.key))

    async def judge(self, queue: str, own: QueueGate | None, candidates: Sequence[Candidate]) -> Verdicts:
        """Take the permits that the candidates need; all of one limit in one write."""
        verdicts: list[Verdict] = [FREE] * len(candidates)
        await self._by_key(candidates, verdicts)
        policy = own.policy if isinstance(own, QueueLimit) else None
        opens_at = await self._by_queue(queue, policy, candidates, verdicts)
        return Verdicts(verdicts, opens_at)

    async def turn_away(self, candidates: Sequence[Candidate]) -> list[Verdict]:
        """Judge candidates of which none is to start: those of keys without a permit step aside, or have something else
        written. All others have to return to their places.
        """
        verdicts: list[Verdict] = ["back"] * len(candidates)
        policies = list(_by_policy(candidates).items())
        await in_portions(policies, lambda one: self._turn_away(*one, candidates, verdicts), _AT_ONCE)
        return verdicts

    async def _turn_away(
        self, policy: LimitPolicy, indexes: Sequence[int], candidates: Sequence[Candidate], verdicts: list[Verdict]
    ) -> None:
        scope = _scope(policy)
        try:
            found = await self._permits.room(scope, policy)
        except OjsError as error:
            if error.code != "unreadable_record":
                raise
            return  # a fetch will see to it
        if not found.number:
            await self._step_aside(scope, policy, indexes, candidates, verdicts, PermitsTaken(0, found.at, hit=found.hit))

    async def missed(self, job: Job) -> None:
        """A token of the job led to no claim; it may have been let go in the place of one that still waits."""
        policy = policy_of(job)
        if policy is not None and policy.key is not None:
            await self._permits.send_note(key_scope(policy.key))

    async def refused(self, unstarted: Iterable[tuple[Candidate, Start]]) -> None:
        """Candidates that were let through didn't start: another transition was faster, or their time was up."""
        claims: dict[tuple[str, Grant], list[PermitClaim]] = {}
        for candidate, start in unstarted:
            for permit in start.granted if isinstance(start, Permitted) else ():
                claims.setdefault((permit.scope, permit.grant), []).append(_claim(candidate))
        for (scope, grant), of_one in claims.items():
            await self._permits.give_back(scope, grant, of_one)
        for scope in {scope for scope, _ in claims}:
            await self._permits.send_note(scope)

    # Keys

    async def _by_key(self, candidates: Sequence[Candidate], verdicts: list[Verdict]) -> None:
        for policy, indexes in _by_policy(candidates).items():
            scope = _scope(policy)
            try:
                taken = await self._permits.take(scope, [_claim(candidates[index]) for index in indexes], policy)
            except OjsError as error:
                if error.code != "unreadable_record":
                    raise
                for index in indexes:  # until the limit's record is removed nobody knows who holds its permits
                    later = self._clock.now() + self._timings.unknown_ms
                    verdicts[index] = transitions.postpone(candidates[index].job, later, candidates[index].moment)
                continue
            _permit(verdicts, indexes[: taken.number], scope, taken)
            if taken.number < len(indexes):
                await self._step_aside(scope, policy, indexes[taken.number :], candidates, verdicts, taken)
            if policy.on_limit != "wait" and taken.hit is None:  # nobody waits: whoever starts is the sign that there is room
                await self._started(scope, candidates[indexes[0]].job)

    async def _step_aside(
        self,
        scope: str,
        policy: LimitPolicy,
        indexes: Sequence[int],
        candidates: Sequence[Candidate],
        verdicts: list[Verdict],
        taken: PermitsTaken,
    ) -> None:
        if policy.on_limit == "wait":
            waiting = [BlockedJob(candidates[index].job, candidates[index].data, candidates[index].front) for index in indexes]
            await self._blocked.hold(scope, policy, waiting)
            for index in indexes:
                verdicts[index] = "held"
            return
        if taken.hit is not None:
            await self._blocked.stopped(scope, None, taken.hit, len(indexes))
        later = taken.at if taken.at is not None else self._clock.now() + self._timings.postponed_ms
        for index in indexes:
            job, moment = candidates[index].job, candidates[index].moment
            if policy.on_limit == "drop":
                verdicts[index] = transitions.drop(job, "rate_limited", moment)
            else:
                verdicts[index] = transitions.postpone(job, later, moment)

    async def _started(self, scope: str, job: Job) -> None:
        if self._blocked.known_stopped(scope):
            await self._blocked.freed(scope, None, job.id)

    # Queues

    async def _by_queue(
        self, queue: str, own: LimitPolicy | None, candidates: Sequence[Candidate], verdicts: list[Verdict]
    ) -> int | None:
        """Once the queue's limit refuses a job, send back all that follow."""
        scope = queue_scope(queue)
        claims = [index for index, verdict in enumerate(verdicts) if isinstance(verdict, Start) and candidates[index].starts]
        start = 0
        while start < len(claims):
            policy = own or _keyless(candidates[claims[start]].job)
            end = start + 1
            while end < len(claims) and (own or _keyless(candidates[claims[end]].job)) == policy:
                end += 1
            if policy is not None:
                group = claims[start:end]
                taken = await self._permits.take(scope, [_claim(candidates[index]) for index in group], policy)
                _permit(verdicts, group[: taken.number], scope, taken)
                if taken.number < len(group):
                    if taken.hit is not None:
                        await self._stopped(queue, taken.hit)
                    await self._stop(candidates, verdicts, claims[start + taken.number :])
                    return taken.at
            start = end
        return None

    async def _stop(self, candidates: Sequence[Candidate], verdicts: list[Verdict], indexes: Sequence[int]) -> None:
        let_through = [(candidates[index], verdict) for index in indexes if isinstance(verdict := verdicts[index], Start)]
        for index in indexes:
            verdicts[index] = "back"
        await self.refused(let_through)


def _job_of(token: bytes) -> str | None:
    """Return the job of a token; None for what is none."""
    try:
        return read_token(token)[0]
    except ValueError:
        return None


def _by_policy(candidates: Sequence[Candidate]) -> dict[LimitPolicy, list[int]]:
    """The candidates that need a permit of a key."""
    groups: dict[LimitPolicy, list[int]] = {}
    for index, candidate in enumerate(candidates):
        policy = policy_of(candidate.job)
        if policy is not None and policy.key is not None and candidate.starts:
            groups.setdefault(policy, []).append(index)
    return groups


def _scope(policy: LimitPolicy) -> str:
    assert policy.key is not None
    return key_scope(policy.key)


def _keyless(job: Job) -> LimitPolicy | None:
    policy = policy_of(job)
    return policy if policy is not None and policy.key is None else None


def _claim(candidate: Candidate) -> PermitClaim:
    return PermitClaim(candidate.job.id, candidate.moment.op, candidate.expects)


def _permit(verdicts: list[Verdict], indexes: Sequence[int], scope: str, taken: PermitsTaken) -> None:
    for index in indexes:
        verdict = verdicts[index]
        assert taken.grant is not None
        before = verdict.granted if isinstance(verdict, Permitted) else ()
        granted = (*before, Permit(scope, taken.grant, taken.counted))
        permits = tuple(permit.scope for permit in granted if permit.counted)
        verdicts[index] = Permitted(max(permit.grant.at for permit in granted), permits, granted)
