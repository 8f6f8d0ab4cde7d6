"""From tokens to claimed jobs: read their records, admit them, and commit the claims."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.store.dispatch.admission import Admissions
from ojs_engine.store.dispatch.in_hand import ClaimTimings, InHand, TokensInHand
from ojs_engine.store.dispatch.request import FetchRequest
from ojs_engine.store.dispatch.requeuer import Requeuer
from ojs_engine.store.gates import Candidate, Start, StartGate
from ojs_engine.store.jobs.jobs import Jobs
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.tokens import Token
from ojs_engine.store.records.writer import Conflict

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class ClaimedJobs:
    """The outcome of some tokens: jobs by id, in the order of the tokens.

    `found_live`: some token was that of a waiting job, even if it couldn't be claimed. `stopped`: the gate sent one back.
    `for_other_workers`: tokens were moved to the lanes of others.
    """

    jobs: dict[str, Job] = field(default_factory=dict)
    found_live: bool = False
    stopped: bool = False
    for_other_workers: bool = False


class Claims:
    """Judges tokens by their records, and sees to it that every token that it is given is answered for."""

    def __init__(
        self,
        bucket: Bucket,
        in_hand: TokensInHand,
        admissions: Admissions,
        jobs: Jobs,
        gate: StartGate | None,
        requeuer: Requeuer,
        timings: ClaimTimings,
    ) -> None:
        self._timings = timings
        self._records = bucket.records
        self._committer = bucket.committer
        self._in_hand = in_hand
        self._admissions = admissions
        self._jobs = jobs
        self._gate = gate
        self._requeuer = requeuer

    async def claim(self, queue: str, tokens: list[Token], request: FetchRequest) -> ClaimedJobs:
        """Judge tokens by their records and claim what they stand for; tokens ahead of their record get a moment. Of
        more than are wanted those that follow keep their places.

        Claimed jobs are returned even if the rest fails: no other process knows of them.
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
            found = self._admissions.pushed_here(queue, waiting)
            unread = found.keys()
            if left := [token.job_id for token in waiting if token.job_id not in unread]:
                found = found | await self._records.many(left)
            again: list[Token] = []
            live: list[InHand] = []
            for token in waiting:
                stored = found[token.job_id]
                if stored.job is not None and token.stands_for(stored.job):
                    live.append(InHand(token, stored, stored.job))
                elif not await self._in_hand.stale(token, stored):
                    again.append(token)
            if request.handled is not None:
                left_over = request.but(request.most - len(claimed.jobs))
                live, met_others = await self._admissions.fitting(queue, live, left_over)
                claimed.for_other_workers = claimed.for_other_workers or met_others
            contended = await self._commit(queue, live, request, claimed)
            # Of what wasn't read it shows by its claim whether its token stood for it.
            if any(one.token.job_id not in unread or one.token not in contended for one in live):
                claimed.found_live = True
            again += contended
            if again and loop.time() >= until:
                self._in_hand.back(again)
                break
            waiting = again
            if waiting:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.05)

    async def _commit(self, queue: str, live: list[InHand], request: FetchRequest, claimed: ClaimedJobs) -> list[Token]:
        """Commit together what is admitted; return the tokens to judge again."""
        admitted, stopped = await self._admissions.admit(queue, live, request)
        claimed.stopped = claimed.stopped or stopped
        # First what is certain, without a wait in between: no other process knows of these claims.
        outcomes = await self._committer.commit_all([one.commit for one in admitted])
        again: list[Token] = []
        done: list[Token] = []
        missed: list[Job] = []
        unstarted: list[tuple[Candidate, Start]] = []
        failure: OjsError | None = None
        for one, outcome in zip(admitted, outcomes, strict=True):
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
        await self._in_hand.done(queue, done)
        if missed or unstarted:
            await self._tell_gate(missed, unstarted)
        if failure is not None and not claimed.jobs:
            raise failure
        return again

    async def _tell_gate(self, missed: Sequence[Job], unstarted: Sequence[tuple[Candidate, Start]]) -> None:
        """Tell the gate of jobs that didn't start. Where that fails it finds out by itself after a while."""
        try:
            for job in missed:
                await self._in_hand.missed(job)
            if self._gate is not None and unstarted:
                await self._gate.refused(unstarted)
        except OjsError as error:
            log.debug("a gate did not hear of what did not start", reason=error.message)
