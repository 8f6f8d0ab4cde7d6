"""Between a token and its claim: the limits of keys and queues (architecture §5; ojs-rate-limiting §6, §8).

A job whose key has no permit left steps aside, so that others of its queue go on. A queue's own limit, from its configuration
or from jobs that name no key, stops the queue: its tokens go back in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from ojs_nats import transitions
from ojs_nats.job import Job, State
from ojs_nats.limits import MANY, Hit, Policy, Room, policy_of, policy_of_queue
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.held import Held
from ojs_nats.store.limits import Claimed, Limits, Taken, key_scope, queue_scope
from ojs_nats.store.queues import Queues
from ojs_nats.transitions import Moment, Transition

__all__ = ["Candidate", "Gate", "Outcome"]

_POSTPONED_MS: Final = 1_000
"""For how long a job is rescheduled when nobody knows when its limit will have room."""

_UNLIMITED: Final = Room(MANY)

Aside = Literal["held", "back"]


class Candidate(NamedTuple):
    """A job in hand with the transition that is to be written over its revision `expects`; `data` is its token's, which may
    come from the `front`.
    """

    job: Job
    transition: Transition
    moment: Moment
    expects: int
    data: bytes
    front: bool


class Outcome(NamedTuple):
    """For each candidate what to write, `held` if its token is safe elsewhere, `back` if it has to return to its place.

    `opens_at`: when the queue's own limit has room again by the passing of time.
    """

    verdicts: list[Transition | Aside]
    opens_at: int | None = None


class Gate:
    """What hand-out asks before it claims."""

    def __init__(self, limits: Limits, held: Held, queues: Queues, clock: ServerClock) -> None:
        self._limits = limits
        self._held = held
        self._queues = queues
        self._clock = clock
        self._stopped: set[str] = set()
        """Queues that this process has seen stopped by their own limit, and not empty since."""

    async def room(self, queue: str) -> Room:
        """How many jobs the queue's configuration lets start now."""
        policy = policy_of_queue(self._queues.config(queue))
        return _UNLIMITED if policy is None else await self._limits.room(queue_scope(queue), policy)

    def known_stopped(self, queue: str) -> bool:
        """Whether it has been said that the queue's own limit holds jobs up."""
        return queue in self._stopped

    async def stopped(self, queue: str, hit: Hit) -> None:
        """Jobs of the queue wait although they were asked for, because of its own limit."""
        if await self._held.stopped(queue_scope(queue), queue, hit) is None:
            self._stopped.add(queue)

    async def emptied(self, queue: str, last: str | None) -> None:
        """A fetch has got all that the queue had, its own limit notwithstanding; `last` is the last job of it."""
        if queue in self._stopped:
            self._stopped.discard(queue)
            await self._held.freed(queue_scope(queue), last)

    async def judge(self, queue: str, candidates: Sequence[Candidate]) -> Outcome:
        """Take the permits that the candidates need; all of one limit in one write."""
        verdicts: list[Transition | Aside] = [candidate.transition for candidate in candidates]
        own = policy_of_queue(self._queues.config(queue))
        if own is None and not any(candidate.job.rate_limit for candidate in candidates):
            return Outcome(verdicts)
        await self._by_key(candidates, verdicts)
        opens_at = await self._by_queue(queue, own, candidates, verdicts)
        return Outcome(verdicts, opens_at)

    async def missed(self, job: Job) -> None:
        """A token of the job led to no claim; it may have been let go in the place of one that still waits."""
        policy = policy_of(job) if job.rate_limit else None
        if policy is not None and policy.key is not None:
            await self._limits.hint(key_scope(policy.key))

    async def refused(self, transition: Transition, expects: int, op: str) -> None:
        """A claim that was let through was not written: another transition was faster."""
        claim = [Claimed(transition.job.id, op, expects)]
        for scope in transition.job.permits:
            await self._limits.give_back(scope, claim)
            await self._limits.hint(scope)

    # Keys

    async def _by_key(self, candidates: Sequence[Candidate], verdicts: list[Transition | Aside]) -> None:
        groups: dict[Policy, list[int]] = {}
        for index, candidate in enumerate(candidates):
            policy = policy_of(candidate.job)
            if policy is not None and policy.key is not None and candidate.transition.job.state is State.ACTIVE:
                groups.setdefault(policy, []).append(index)
        for policy, indexes in groups.items():
            assert policy.key is not None
            scope = key_scope(policy.key)
            taken = await self._limits.take(scope, [_claim(candidates[index]) for index in indexes], policy)
            for index in indexes[: taken.number]:
                verdicts[index] = _permitted(candidates[index].transition, scope if taken.counted else None)
            for index in indexes[taken.number :]:
                verdicts[index] = await self._step_aside(scope, policy, candidates[index], taken)
            if policy.on_limit != "wait" and taken.hit is None:  # nobody waits: whoever starts is the sign that there is room
                await self._started(scope, candidates[indexes[0]].job)

    async def _step_aside(self, scope: str, policy: Policy, candidate: Candidate, taken: Taken) -> Transition | Aside:
        if policy.on_limit == "wait":
            await self._held.hold(scope, policy, candidate.job, candidate.data, front=candidate.front)
            return "held"
        if taken.hit is not None:
            await self._held.stopped(scope, None, taken.hit)
        if policy.on_limit == "drop":
            return transitions.drop(candidate.job, "rate_limited", candidate.moment)
        later = taken.at if taken.at is not None else self._clock.now() + _POSTPONED_MS
        return transitions.postpone(candidate.job, later, candidate.moment)

    async def _started(self, scope: str, job: Job) -> None:
        if self._held.known_stopped(scope):
            await self._held.freed(scope, job.id)

    # Queues

    async def _by_queue(
        self, queue: str, own: Policy | None, candidates: Sequence[Candidate], verdicts: list[Transition | Aside]
    ) -> int | None:
        """Whatever comes behind the first that is stopped is stopped, too."""
        scope = queue_scope(queue)
        claims = [
            index
            for index, verdict in enumerate(verdicts)
            if not isinstance(verdict, str) and verdict.job.state is State.ACTIVE
        ]
        start = 0
        while start < len(claims):
            policy = own or _keyless(candidates[claims[start]].job)
            end = start + 1
            while end < len(claims) and (own or _keyless(candidates[claims[end]].job)) == policy:
                end += 1
            if policy is not None:
                group = claims[start:end]
                taken = await self._limits.take(scope, [_claim(candidates[index]) for index in group], policy)
                for index in group[: taken.number]:
                    verdict = verdicts[index]
                    assert not isinstance(verdict, str)
                    verdicts[index] = _permitted(verdict, scope if taken.counted else None)
                if taken.number < len(group):
                    if taken.hit is not None:
                        await self.stopped(queue, taken.hit)
                    await self._stop(candidates, verdicts, claims[start + taken.number :])
                    return taken.at
            start = end
        return None

    async def _stop(self, candidates: Sequence[Candidate], verdicts: list[Transition | Aside], indexes: Sequence[int]) -> None:
        for index in indexes:
            verdict = verdicts[index]
            if not isinstance(verdict, str):
                await self.refused(verdict, candidates[index].expects, candidates[index].moment.op)
            verdicts[index] = "back"


def _keyless(job: Job) -> Policy | None:
    policy = policy_of(job)
    return policy if policy is not None and policy.key is None else None


def _claim(candidate: Candidate) -> Claimed:
    return Claimed(candidate.job.id, candidate.moment.op, candidate.expects)


def _permitted(transition: Transition, scope: str | None) -> Transition:
    if scope is None:
        return transition
    job = transition.job
    return replace(transition, job=replace(job, permits=(*job.permits, scope)))
