"""From tokens to claimed jobs: is a token still true, does a gate let its job through, and the claim itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import structlog
from msgspec.structs import replace

from ojs_core.base.errors import OjsError
from ojs_core.base.timings import Order, Timings
from ojs_core.domain import transitions
from ojs_core.domain.job import Job, State
from ojs_core.domain.transitions import Transition
from ojs_core.jetstream.api import put_all
from ojs_core.store.dispatch.request import FetchRequest
from ojs_core.store.dispatch.requeuer import Requeuer
from ojs_core.store.dispatch.token_reader import TokenReader
from ojs_core.store.dispatch.wakeups import Wakeups
from ojs_core.store.gates import FREE, Candidate, Start, StartGate
from ojs_core.store.jobs.jobs import Jobs
from ojs_core.store.queues.queues import Queues
from ojs_core.store.records.bucket import Bucket
from ojs_core.store.records.records import Stored
from ojs_core.store.records.tokens import Token, lane_for
from ojs_core.store.records.writer import Conflict

log = structlog.get_logger(__name__)


class ClaimTimings(Timings, frozen=True, kw_only=True):
    """How long a token without a job is checked, and kept."""

    young_ms: int = 1_000
    """A token this young may be ahead of its record; it is checked again for up to `reread_s` while others are claimed."""
    reread_s: float = 0.25
    """How long a young one is checked again, each time after a moment."""
    park_s: float = 5.0
    """After this long an older one is checked again."""
    drop_after_ms: int = 60_000
    """After this long it is dropped: it belongs to a push that never was."""
    order: ClassVar[Order] = (("young_ms", "drop_after_ms", "a token would be dropped ahead of its record"),)


@dataclass(slots=True)
class ClaimedJobs:
    """What came of some tokens: jobs by id, in the order of the tokens.

    `found_live`: some token stood for a job, whether or not it could be had. `stopped`: the gate sent one back.
    `for_other_workers`: tokens were moved to the lanes of others.
    """

    jobs: dict[str, Job] = field(default_factory=dict)
    found_live: bool = False
    stopped: bool = False
    for_other_workers: bool = False


_Claim = tuple[Token, Stored, Job]


class _Through(NamedTuple):
    """What is to be written of a candidate, and its leave if that is its claim."""

    token: Token
    candidate: Candidate
    transition: Transition
    start: Start = FREE

    @property
    def commit(self) -> tuple[Transition, int, str]:
        return self.transition, self.candidate.expects, self.candidate.moment.op


class Claims:
    """Judges tokens by their records, and answers for every token that it is given."""

    def __init__(
        self,
        bucket: Bucket,
        reader: TokenReader,
        jobs: Jobs,
        queues: Queues,
        gate: StartGate | None,
        requeuer: Requeuer,
        wakeups: Wakeups,
        timings: ClaimTimings,
    ) -> None:
        self._timings = timings
        self._nats = bucket.nats
        self._config = bucket.config
        self._reader = reader
        self._jobs = jobs
        self._records = bucket.records
        self._committer = bucket.committer
        self._clock = bucket.clock
        self._queues = queues
        self._gate = gate
        self._requeuer = requeuer
        self._wakeups = wakeups

    async def claim(self, queue: str, tokens: list[Token], request: FetchRequest) -> ClaimedJobs:
        """Judge tokens by their records and claim what they stand for; tokens ahead of their record get a moment. Of more than
        are wanted those that follow keep their places.

        What is claimed is returned even if the rest fails: nobody else knows of it.
        """
        claimed = ClaimedJobs()
        try:
            with self._requeuer.unless_handed_on(claimed.jobs.values()):
                await self._claim_into(claimed, queue, tokens, request)
        except OjsError:
            if not claimed.jobs:
                raise
        ids = dict.fromkeys(token.job_id for token in tokens)  # a token may be there twice, its job is handed out once
        claimed.jobs = {job_id: claimed.jobs[job_id] for job_id in ids if job_id in claimed.jobs}
        return claimed

    async def _claim_into(self, claimed: ClaimedJobs, queue: str, tokens: list[Token], request: FetchRequest) -> None:
        waiting = tokens
        loop = asyncio.get_running_loop()
        until = loop.time() + self._timings.reread_s
        pause = 0.002
        while waiting:
            found = self._pushed_here(queue, waiting)
            unread = found.keys()
            if left := [token.job_id for token in waiting if token.job_id not in unread]:
                found = found | await self._records.many(left)
            again: list[Token] = []
            claims: list[_Claim] = []
            for token in waiting:
                stored = found[token.job_id]
                if stored.job is not None and token.stands_for(stored.job):
                    claims.append((token, stored, stored.job))
                elif not await self._stale(token, stored):
                    again.append(token)
            if request.handled is not None:
                claims = await self._fitting(queue, claims, request, claimed)
            contended = await self._swap(queue, claims, request, claimed)
            # Of what wasn't read it shows by its claim whether its token stood for it.
            if any(token.job_id not in unread or token not in contended for token, _, _ in claims):
                claimed.found_live = True
            again += contended
            if again and loop.time() >= until:
                for token in again:
                    self._reader.back(token)
                break
            waiting = again
            if waiting:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.05)

    async def _fitting(self, queue: str, claims: list[_Claim], request: FetchRequest, claimed: ClaimedJobs) -> list[_Claim]:
        """Return those whose jobs the worker can run, and no more than are wanted. The tokens of others move to lanes
        where workers that can run them find them (docs/adr/029), each once.
        """
        fit: list[_Claim] = []
        unfit: list[tuple[str, bytes]] = []
        moved: list[Token] = []
        for claim in claims:
            token, _, job = claim
            if request.handled is not None and not request.handled.runs_job(job):
                unfit.append((self._config.ready(queue, token.priority, lane_for(job)), token.data))
                moved.append(token)
            elif len(fit) < request.most - len(claimed.jobs):
                fit.append(claim)
            else:
                self._reader.back(token)
        if unfit:
            claimed.for_other_workers = True
            try:
                await put_all(self._nats, unfit, "tokens")
            except OjsError:
                self.put_back(moved)
                raise
            await self._all_done(queue, moved)
        return fit

    def _pushed_here(self, queue: str, tokens: list[Token]) -> dict[str, Stored]:
        """The records of tokens' jobs that this process has pushed: if one has changed since, its claim fails.

        None of those that pass a gate, as a start that fails would have used up its leave.
        """
        found: dict[str, Stored] = {}
        free = self._queues.gate(queue) is None
        for token in tokens:
            pushed = self._jobs.take_pushed(token.job_id)
            job = None if pushed is None else pushed.job
            if pushed is not None and job is not None and free and not self._asks(job) and token.stands_for(job):
                found[token.job_id] = pushed
        return found

    async def _stale(self, token: Token, stored: Stored) -> bool:
        """Answer for a token that needs no second look: its commit can't succeed any more, or it is old and has no job."""
        if not self._records.nearest_is_leader:
            stored = await self._records.leader_for_hint(token.job_id)
        if token.superseded(stored):
            if token.stands_for(stored.job):
                return False
            if stored.job is not None:
                await self._missed(stored.job)
            self._reader.done(token)
            return True
        if self._clock.now() - token.stored_at <= self._timings.young_ms:
            return False
        self._park(token)
        return True

    async def _swap(
        self,
        queue: str,
        claims: list[_Claim],
        request: FetchRequest,
        claimed: ClaimedJobs,
    ) -> list[Token]:
        """Commit claims together, as far as gates let them through; returns the tokens to look at again."""
        through, stopped = await self._let_through(queue, claims, request)
        claimed.stopped = claimed.stopped or stopped
        again: list[Token] = []
        done: list[Token] = []
        missed: list[Job] = []
        unstarted: list[tuple[Candidate, Start]] = []
        failure: OjsError | None = None
        # First what is certain, without a wait in between: nobody else knows of these claims.
        outcomes = await self._committer.commit_all([one.commit for one in through])
        for one, outcome in zip(through, outcomes, strict=True):
            token, job = one.token, one.transition.job
            started = job.state is State.ACTIVE
            if one.start.at and (isinstance(outcome, Conflict) or (isinstance(outcome, int) and not started)):
                unstarted.append((one.candidate, one.start))
            if isinstance(outcome, int):
                done.append(token)
                if started:
                    claimed.jobs[token.job_id] = job
                    self._jobs.remember(outcome, job)
                else:
                    missed.append(job)
            elif isinstance(outcome, Conflict):
                again.append(token)
            else:
                failure = outcome
                if started:
                    self._requeuer.give_back(job, "the claim was not confirmed in time")
        await self._all_done(queue, done)
        try:
            for job in missed:
                await self._missed(job)
            if self._gate is not None and unstarted:
                await self._gate.refused(unstarted)
        except OjsError as error:  # a gate finds out by itself after a while
            log.debug("a gate was not told of what did not start", reason=error.message)
        if failure is not None and not claimed.jobs:
            raise failure
        return again

    async def _let_through(self, queue: str, claims: list[_Claim], request: FetchRequest) -> tuple[list[_Through], bool]:
        """What may be written, and whether the queue's gate has stopped the rest."""
        candidates = [self._candidate(token, stored, job) for token, stored, job in claims]
        gate = self._gate
        asking = [] if gate is None else [token for token, _, job in claims if gate.asks(job)]
        if gate is None or (not asking and self._queues.gate(queue) is None):
            plain = zip(claims, candidates, strict=True)
            return [_Through(token, one, _started(one, FREE, request)) for (token, _, _), one in plain], False
        for token in asking:
            self._reader.gated(token)
        judged = await gate.judge(queue, candidates)
        through: list[_Through] = []
        aside: list[Token] = []
        stopped = False
        for (token, _, _), candidate, verdict in zip(claims, candidates, judged.verdicts, strict=True):
            if verdict == "held":
                aside.append(token)
            elif verdict == "back":
                self._reader.back(token)
                stopped = True
            elif isinstance(verdict, Transition):
                through.append(_Through(token, candidate, verdict))
            else:
                through.append(_Through(token, candidate, _started(candidate, verdict, request), verdict))
        await self._all_done(queue, aside)
        if judged.opens_at is not None:
            self._wakeups.wake_later(queue, (judged.opens_at - self._clock.now()) / 1_000)
        return through, stopped

    def _candidate(self, token: Token, stored: Stored, job: Job) -> Candidate:
        moment = self._clock.moment()
        starts = transitions.expired(job, moment.now) is None
        return Candidate(job, starts, moment, stored.sequence, token.data, token.front)

    def _asks(self, job: Job) -> object:
        return self._gate is not None and self._gate.asks(job)

    async def _missed(self, job: Job) -> None:
        if self._gate is not None and self._gate.asks(job):
            await self._gate.missed(job)

    def put_back(self, tokens: Iterable[Token]) -> None:
        """Tokens that are not wanted yet keep their places."""
        for token in tokens:
            self._reader.back(token)

    async def set_aside(self, gate: StartGate, queue: str, tokens: list[Token]) -> bool:
        """Have the gate hold tokens whose jobs can't start, drop those that stand for nothing, and put the others back
        in their places. Returns whether none is left.
        """
        found = await self._records.many([token.job_id for token in tokens])
        candidates: dict[Token, Candidate] = {}
        for token in tokens:
            stored = found[token.job_id]
            if stored.job is not None and token.stands_for(stored.job):
                candidates[token] = self._candidate(token, stored, stored.job)
        verdicts = dict(zip(candidates, await gate.turn_away(list(candidates.values())), strict=True))
        done = {token for token, verdict in verdicts.items() if verdict == "held"}
        written = {token: verdict for token, verdict in verdicts.items() if isinstance(verdict, Transition)}
        commits = [(verdict, candidates[token].expects, candidates[token].moment.op) for token, verdict in written.items()]
        outcomes = await self._committer.commit_all(commits) if commits else []
        done.update(token for token, outcome in zip(written, outcomes, strict=True) if isinstance(outcome, int))
        await self._all_done(queue, [token for token in tokens if token in done])
        left = False
        for token in tokens:
            if token not in done and (token in candidates or not await self._stale(token, found[token.job_id])):
                self._reader.back(token)
                left = True
        return not left

    async def _all_done(self, queue: str, tokens: Sequence[Token]) -> None:
        """In a bounded queue the places of these jobs are free when the fetch is answered."""
        if self._queues.bound(queue):
            await self._reader.all_done(tokens)
        else:
            for token in tokens:
                self._reader.done(token)

    def _park(self, token: Token) -> None:
        """An old token without its record: there is no job yet to reorder, so it may come back later, or not at all."""
        if self._clock.now() - token.stored_at > self._timings.drop_after_ms:
            log.warning("token without a job dropped", job_id=token.job_id)
            self._reader.done(token)
        else:
            self._reader.later(token, self._timings.park_s)


def _started(candidate: Candidate, start: Start, request: FetchRequest) -> Transition:
    """The job starts when it has had leave to, so that what `started_at` says keeps to its limits as well."""
    job, moment, starts = candidate.job, candidate.moment, candidate.starts
    if start.at:
        moment = replace(moment, now=max(moment.now, start.at))
        starts = transitions.expired(job, moment.now) is None
    if not starts:
        return transitions.expire(job, moment)
    transition = transitions.claim(job, request.worker, request.lease_ms, moment)
    return replace(transition, job=replace(transition.job, permits=start.permits)) if start.at else transition
