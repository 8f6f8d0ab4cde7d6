"""Between a token and its claim: the limits of keys and queues (ojs-rate-limiting §6, §8; docs/adr/014).

A job whose key has no permit left steps aside, so that others of its queue go on. A queue's own limit, from its configuration
or from jobs that name no key, stops the queue: its tokens go back in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from ojs_core.base.errors import OjsError
from ojs_core.base.lru import Lru
from ojs_core.base.portions import in_portions
from ojs_core.base.timings import Timings
from ojs_core.domain import transitions
from ojs_core.domain.job import Job
from ojs_core.domain.rate_limits.permits import MANY, FreePermits, Grant, Hit
from ojs_core.domain.rate_limits.policy import LimitPolicy, policy_of, policy_of_queue
from ojs_core.domain.transitions import Moment, Transition
from ojs_core.jetstream.clock import ServerClock
from ojs_core.store.queues.queues import Queues
from ojs_core.store.rate_limits.blocked_jobs import BlockedJob, BlockedJobs
from ojs_core.store.rate_limits.permits import Permit, PermitClaim, Permits, PermitsTaken, key_scope, queue_scope

_AT_ONCE: Final = 8
"""Keys whose jobs are turned away together. Whoever fetches meanwhile waits for the work of as many, over and over."""
_STOPPED: Final = 10_000
"""Queues of which this process remembers that their own limit stopped them."""
_UNLIMITED: Final = FreePermits(MANY)


class LimiterTimings(Timings, frozen=True, kw_only=True):
    """For how long jobs of limits step aside."""

    postponed_ms: int = 1_000
    """For how long a job is rescheduled when nobody knows when its limit will have room."""
    unknown_ms: int = 30_000
    """The same, when the record of its limit can't be read."""


class Candidate(NamedTuple):
    """A job in hand whose transition of the `moment` is to be written over its revision `expects`; `data` is its token's,
    which may come from the `front`. One that doesn't start, because it has outlived a limit of its own, needs no permit.
    """

    job: Job
    starts: bool
    moment: Moment
    expects: int
    data: bytes
    front: bool


class Permitted(NamedTuple):
    """A candidate that may go on, with what limits have granted it."""

    granted: tuple[Permit, ...] = ()

    @property
    def permits(self) -> tuple[str, ...]:
        """The limits whose permits it holds until it ends."""
        return tuple(permit.scope for permit in self.granted if permit.counted)

    @property
    def at(self) -> int:
        """When it was granted the last of them (server time, Unix ms): then it starts, as every limit counts it."""
        return max((permit.grant.at for permit in self.granted), default=0)


_FREE: Final = Permitted()

TokenFate = Literal["held", "back"]
Verdict = Permitted | Transition | TokenFate
"""What becomes of a candidate: it goes on; or this is written instead; or its token is safe elsewhere (`held`), or has to
return to its place (`back`).
"""


class Verdicts(NamedTuple):
    """A verdict on each candidate. `opens_at`: when the queue's own limit has room again by the passing of time."""

    verdicts: list[Verdict]
    opens_at: int | None = None


class Limiter:
    """What hand-out asks before it claims."""

    def __init__(
        self, permits: Permits, blocked: BlockedJobs, queues: Queues, clock: ServerClock, timings: LimiterTimings
    ) -> None:
        self._timings = timings
        self._permits = permits
        self._blocked = blocked
        self._queues = queues
        self._clock = clock
        self._stopped: Lru[bool] = Lru(_STOPPED)
        """Queues that this process has seen stopped by their own limit, and not empty since."""

    async def room(self, queue: str) -> FreePermits:
        """How many jobs the queue's configuration lets start now."""
        policy = policy_of_queue(self._queues.config(queue))
        return _UNLIMITED if policy is None else await self._permits.room(queue_scope(queue), policy)

    def known_stopped(self, queue: str) -> bool:
        """Whether it has been said that the queue's own limit holds jobs up."""
        return self._stopped.get(queue) is not None

    async def stopped(self, queue: str, hit: Hit) -> None:
        """Jobs of the queue wait although they were asked for, because of its own limit."""
        await self._blocked.stopped(queue_scope(queue), queue, hit)
        self._stopped.put(queue, True, 1)

    async def emptied(self, queue: str, last: str | None) -> None:
        """A fetch has got all that the queue had, its own limit notwithstanding; `last` is the last job of it."""
        if self.known_stopped(queue):
            self._stopped.drop(queue)
            await self._blocked.freed(queue_scope(queue), queue, last)

    async def judge(self, queue: str, candidates: Sequence[Candidate]) -> Verdicts:
        """Take the permits that the candidates need; all of one limit in one write."""
        verdicts: list[Verdict] = [_FREE] * len(candidates)
        own = policy_of_queue(self._queues.config(queue))
        if own is None and not any(candidate.job.rate_limit for candidate in candidates):
            return Verdicts(verdicts)
        await self._by_key(candidates, verdicts)
        opens_at = await self._by_queue(queue, own, candidates, verdicts)
        return Verdicts(verdicts, opens_at)

    async def turn_away(self, candidates: Sequence[Candidate]) -> list[Verdict]:
        """Judge candidates of which none is to start, in whatever number: those of keys without a permit step aside, or have
        something else written. All others have to return to their places.
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
        policy = policy_of(job) if job.rate_limit else None
        if policy is not None and policy.key is not None:
            await self._permits.hint(key_scope(policy.key))

    async def refused(self, unstarted: Iterable[tuple[Candidate, Permitted]]) -> None:
        """Candidates that were let through didn't start: another transition was faster, or their time was up."""
        claims: dict[tuple[str, Grant], list[PermitClaim]] = {}
        for candidate, permitted in unstarted:
            for permit in permitted.granted:
                claims.setdefault((permit.scope, permit.grant), []).append(_claim(candidate))
        for (scope, grant), of_one in claims.items():
            await self._permits.give_back(scope, grant, of_one)
        for scope in {scope for scope, _ in claims}:
            await self._permits.hint(scope)

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
        """Whatever comes behind the first that is stopped is stopped, too."""
        scope = queue_scope(queue)
        claims = [
            index for index, verdict in enumerate(verdicts) if isinstance(verdict, Permitted) and candidates[index].starts
        ]
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
                        await self.stopped(queue, taken.hit)
                    await self._stop(candidates, verdicts, claims[start + taken.number :])
                    return taken.at
            start = end
        return None

    async def _stop(self, candidates: Sequence[Candidate], verdicts: list[Verdict], indexes: Sequence[int]) -> None:
        let_through = [(candidates[index], verdict) for index in indexes if isinstance(verdict := verdicts[index], Permitted)]
        for index in indexes:
            verdicts[index] = "back"
        await self.refused(let_through)


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
        assert isinstance(verdict, Permitted)
        assert taken.grant is not None
        verdicts[index] = Permitted((*verdict.granted, Permit(scope, taken.grant, taken.counted)))
