"""Admission: of the jobs in hand, a fetch claims those that its worker can run and that their gates let start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.transitions import Transition
from ojs_engine.jetstream.api import put_all
from ojs_engine.store.dispatch.in_hand import InHand, TokensInHand
from ojs_engine.store.dispatch.request import FetchRequest
from ojs_engine.store.dispatch.token_reader import TokenReader
from ojs_engine.store.dispatch.wakeups import Wakeups
from ojs_engine.store.gates import FREE, Candidate, Start, StartGate, Verdicts
from ojs_engine.store.jobs.jobs import Jobs
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.tokens import Token, lane_for


class Admitted(NamedTuple):
    """A transition that is to be written of a candidate, and its leave if that is a claim."""

    token: Token
    candidate: Candidate
    transition: Transition
    start: Start = FREE

    @property
    def commit(self) -> tuple[Transition, int, str]:
        return self.transition, self.candidate.expects, self.candidate.moment.op


class Admission(NamedTuple):
    """The transitions that may be written, and whether the gate has sent the rest back."""

    admitted: list[Admitted]
    stopped: bool = False


class Admissions:
    """Decides what may be claimed."""

    def __init__(
        self,
        bucket: Bucket,
        reader: TokenReader,
        in_hand: TokensInHand,
        jobs: Jobs,
        queues: Queues,
        gate: StartGate | None,
        wakeups: Wakeups,
    ) -> None:
        self._nats = bucket.nats
        self._config = bucket.config
        self._clock = bucket.clock
        self._reader = reader
        self._in_hand = in_hand
        self._jobs = jobs
        self._queues = queues
        self._gate = gate
        self._wakeups = wakeups

    def pushed_here(self, queue: str, tokens: list[Token]) -> dict[str, Stored]:
        """Return the records of tokens' jobs that this process has pushed: if one has changed since, its claim fails.

        None of those that pass a gate, as a start that fails would have used up its leave.
        """
        found: dict[str, Stored] = {}
        free = self._queues.gate(queue) is None
        asks = None if self._gate is None else self._gate.asks
        for token in tokens:
            pushed = self._jobs.take_pushed(token.job_id)
            job = None if pushed is None else pushed.job
            if pushed is not None and job is not None and free and not (asks and asks(job)) and token.stands_for(job):
                found[token.job_id] = pushed
        return found

    async def fitting(self, queue: str, in_hand: list[InHand], request: FetchRequest) -> tuple[list[InHand], bool]:
        """Return those whose jobs the worker can run, no more than are wanted, and whether others were met. The
        tokens of those move to lanes where workers that can run them find them (docs/adr/029), each once.
        """
        fit: list[InHand] = []
        others: list[tuple[str, bytes]] = []
        moved: list[Token] = []
        for one in in_hand:
            if request.handled is not None and not request.handled.runs_job(one.job):
                others.append((self._config.ready(queue, one.token.priority, lane_for(one.job)), one.token.data))
                moved.append(one.token)
            elif len(fit) < request.most:
                fit.append(one)
            else:
                self._reader.back(one.token)
        if others:
            try:
                await put_all(self._nats, others, "tokens")
            except OjsError:
                self._in_hand.back(moved)
                raise
            await self._in_hand.done(queue, moved)
        return fit, bool(others)

    async def admit(self, queue: str, in_hand: list[InHand], request: FetchRequest) -> Admission:
        """Decide what is to be written of the jobs in hand: their claims, unless a gate decides differently."""
        gate = self._gate
        asking = [] if gate is None else [one.token for one in in_hand if gate.asks(one.job)]
        candidates = [one.candidate(self._clock.moment()) for one in in_hand]
        own = self._queues.gate(queue)
        if gate is None or (not asking and own is None):
            pairs = zip(in_hand, candidates, strict=True)
            return Admission([Admitted(one.token, candidate, _started(candidate, FREE, request)) for one, candidate in pairs])
        for token in asking:
            self._reader.gated(token)
        verdicts = await gate.judge(queue, own, candidates)
        return await self._judged(queue, in_hand, candidates, verdicts, request)

    async def _judged(
        self, queue: str, in_hand: list[InHand], candidates: Sequence[Candidate], judged: Verdicts, request: FetchRequest
    ) -> Admission:
        admitted: list[Admitted] = []
        held: list[Token] = []
        stopped = False
        for (token, _, _), candidate, verdict in zip(in_hand, candidates, judged.verdicts, strict=True):
            if verdict == "held":
                held.append(token)
            elif verdict == "back":
                self._reader.back(token)
                stopped = True
            elif isinstance(verdict, Transition):
                admitted.append(Admitted(token, candidate, verdict))
            else:
                admitted.append(Admitted(token, candidate, _started(candidate, verdict, request), verdict))
        await self._in_hand.done(queue, held)
        if judged.opens_at is not None:
            self._wakeups.wake_later(queue, (judged.opens_at - self._clock.now()) / 1_000)
        return Admission(admitted, stopped)


def _started(candidate: Candidate, start: Start, request: FetchRequest) -> Transition:
    """Start the job when it has had leave to, so that `started_at` keeps to its limits as well."""
    job, moment, starts = candidate.job, candidate.moment, candidate.starts
    if start.at:
        moment = replace(moment, now=max(moment.now, start.at))
        starts = transitions.expired(job, moment.now) is None
    if not starts:
        return transitions.expire(job, moment)
    transition = transitions.claim(job, request.worker, request.lease_ms, moment)
    return replace(transition, job=replace(transition.job, permits=start.permits)) if start.at else transition
