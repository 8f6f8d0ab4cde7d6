"""From tokens to claimed jobs: is a token still true, do limits let its job through, and the claim itself (architecture §5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from ojs_nats import transitions
from ojs_nats.errors import OjsError
from ojs_nats.job import Job, State
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer, Conflict
from ojs_nats.store.gate import Candidate, Gate
from ojs_nats.store.jobs import Jobs
from ojs_nats.store.link import Link
from ojs_nats.store.pulls import DROP_AFTER_MS, Token
from ojs_nats.store.queues import Queues
from ojs_nats.store.records import Records, Stored
from ojs_nats.store.returns import Returns
from ojs_nats.store.wake import Wakes
from ojs_nats.transitions import Transition

__all__ = ["Claimed", "Claims"]

log = structlog.get_logger(__name__)

YOUNG_MS: Final = 1_000
"""A token this young may be ahead of its record; it is looked at again for up to `REREAD_S` while others are claimed."""
REREAD_S: Final = 0.25
PARK_NS: Final = 5_000_000_000
_GONE_S: Final = 0.5
"""How long a fetch waits to hear that tokens of a bounded queue are gone."""


@dataclass(slots=True)
class Claimed:
    """What came of some tokens: jobs by id, in the order of the tokens.

    `stood`: some token stood for a job, whether or not it could be had. `stopped`: the queue's own limit let no more through.
    """

    jobs: dict[str, Job] = field(default_factory=dict)
    stood: bool = False
    stopped: bool = False


class Claims:
    """Judges tokens by their records, and answers for every token that it is given."""

    def __init__(
        self,
        bulk: Link,
        jobs: Jobs,
        records: Records,
        committer: Committer,
        clock: ServerClock,
        queues: Queues,
        gate: Gate,
        returns: Returns,
        wakes: Wakes,
    ) -> None:
        self._bulk = bulk
        self._jobs = jobs
        self._records = records
        self._committer = committer
        self._clock = clock
        self._queues = queues
        self._gate = gate
        self._returns = returns
        self._wakes = wakes

    async def claim(self, queue: str, tokens: list[Token], worker: str | None, lease_ms: int | None) -> Claimed:
        """Judge tokens by their records and claim what they stand for; tokens ahead of their record get a moment.

        What is claimed is returned even if the rest fails: nobody else knows of it.
        """
        claimed = Claimed()
        try:
            await self._claim_into(claimed, queue, tokens, worker, lease_ms)
        except OjsError:
            if not claimed.jobs:
                raise
        ids = dict.fromkeys(token.job_id for token in tokens)  # a token may be there twice, its job is handed out once
        claimed.jobs = {job_id: claimed.jobs[job_id] for job_id in ids if job_id in claimed.jobs}
        return claimed

    async def _claim_into(
        self, claimed: Claimed, queue: str, tokens: list[Token], worker: str | None, lease_ms: int | None
    ) -> None:
        waiting = tokens
        loop = asyncio.get_running_loop()
        until = loop.time() + REREAD_S
        pause = 0.002
        while waiting:
            found = await self._records.many([token.job_id for token in waiting])
            again: list[Token] = []
            claims: list[tuple[Token, Stored, Job]] = []
            for token in waiting:
                stored = found[token.job_id]
                if stored.job is not None and token.stands_for(stored.job):
                    claims.append((token, stored, stored.job))
                elif not await self._stale(token, stored):
                    again.append(token)
            claimed.stood = claimed.stood or bool(claims)
            again += await self._swap(queue, claims, worker, lease_ms, claimed)
            if again and loop.time() >= until:
                for token in again:
                    self._bulk.publish(token.ack, b"-NAK")  # at once, so it keeps its place
                break
            waiting = again
            if waiting:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.05)

    async def _stale(self, token: Token, stored: Stored) -> bool:
        """Answer for a token that needs no second look: its commit can't succeed any more, or it is old and has no job."""
        if not self._records.nearest_is_leader:
            stored = await self._records.leader_for_hint(token.job_id)
        if token.superseded(stored):
            if token.stands_for(stored.job):
                return False
            if stored.job is not None:
                await self._gate.missed(stored.job)
            self._ack(token)
            return True
        if self._clock.now() - token.stored_at <= YOUNG_MS:
            return False
        self._park(token)
        return True

    async def _swap(
        self,
        queue: str,
        claims: list[tuple[Token, Stored, Job]],
        worker: str | None,
        lease_ms: int | None,
        claimed: Claimed,
    ) -> list[Token]:
        """Commit claims together, as far as limits let them through; returns the tokens that have to be looked at again."""
        commits, tokens, stopped = await self._let_through(queue, claims, worker, lease_ms)
        claimed.stopped = claimed.stopped or stopped
        again: list[Token] = []
        done: list[Token] = []
        failure: OjsError | None = None
        for token, commit, outcome in zip(tokens, commits, await self._committer.commit_all(commits), strict=True):
            job = commit[0].job
            if isinstance(outcome, int):
                if job.state is not State.ACTIVE:
                    await self._gate.missed(job)
                done.append(token)
                if job.state is State.ACTIVE:
                    claimed.jobs[token.job_id] = job
                    self._jobs.cache.put(outcome, job)
            elif isinstance(outcome, Conflict):
                await self._gate.refused(*commit)
                again.append(token)
            else:
                failure = outcome
                if job.state is State.ACTIVE:
                    self._returns.give_back(job, "the claim was not confirmed in time")
        await self._ack_all(queue, done)
        if failure is not None and not claimed.jobs:
            raise failure
        return again

    async def _let_through(
        self, queue: str, claims: list[tuple[Token, Stored, Job]], worker: str | None, lease_ms: int | None
    ) -> tuple[list[tuple[Transition, int, str]], list[Token], bool]:
        """The commits that limits allow, their tokens, and whether the queue's own limit has stopped it."""
        candidates: list[Candidate] = []
        for token, stored, job in claims:
            moment = self._clock.moment()
            if transitions.expired(job, moment.now) is not None:
                transition = transitions.expire(job, moment)
            else:
                transition = transitions.claim(job, worker, lease_ms, moment)
            candidates.append(Candidate(job, transition, moment, stored.sequence, token.data, token.front))
        judged = await self._gate.judge(queue, candidates)
        commits: list[tuple[Transition, int, str]] = []
        tokens: list[Token] = []
        stopped = False
        for (token, _, _), candidate, verdict in zip(claims, candidates, judged.verdicts, strict=True):
            if verdict == "held":
                self._ack(token)
            elif verdict == "back":
                self._bulk.publish(token.ack, b"-NAK")  # at once, so it keeps its place
                stopped = True
            else:
                commits.append((verdict, candidate.expects, candidate.moment.op))
                tokens.append(token)
        if judged.opens_at is not None:
            self._wakes.wake_later(queue, (judged.opens_at - self._clock.now()) / 1_000)
        return commits, tokens, stopped

    async def _ack_all(self, queue: str, tokens: Sequence[Token]) -> None:
        """In a bounded queue the places of these jobs are free when the fetch is answered.

        All of them come from one consumer, which acts on acks in order: the last one's answer is enough.
        """
        last = tokens[-1] if tokens and self._queues.bound(queue) else None
        for token in tokens:
            if token is not last:
                self._ack(token)
        if last is not None:
            await self._bulk.request(last.ack, b"+ACK", timeout_s=_GONE_S)

    def _ack(self, token: Token) -> None:
        self._bulk.publish(token.ack, b"+ACK")

    def _park(self, token: Token) -> None:
        """An old token without its record: there is no job yet to reorder, so it may come back later, or not at all."""
        if self._clock.now() - token.stored_at > DROP_AFTER_MS:
            log.warning("token without a job dropped", job_id=token.job_id)
            self._ack(token)
        else:
            self._bulk.publish(token.ack, b'-NAK {"delay": %d}' % PARK_NS)
