"""Tokens in hand, and answering for them: done with, back in their places, or put off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

import structlog

from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment
from ojs_engine.store.dispatch.token_reader import TokenReader
from ojs_engine.store.gates import Candidate, StartGate
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.tokens import Token
from ojs_link.timings import Order, Timings

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


class InHand(NamedTuple):
    """A token, its job's record, and the job that it stands for."""

    token: Token
    stored: Stored
    job: Job

    def candidate(self, moment: Moment) -> Candidate:
        """Return the job as one that is to start at a moment."""
        starts = transitions.expired(self.job, moment.now) is None
        return Candidate(self.job, starts, moment, self.stored.sequence, self.token.data, self.token.front)


class TokensInHand:
    """Answers for tokens that a fetch has taken."""

    def __init__(
        self, bucket: Bucket, reader: TokenReader, queues: Queues, gate: StartGate | None, timings: ClaimTimings
    ) -> None:
        self._records = bucket.records
        self._clock = bucket.clock
        self._reader = reader
        self._queues = queues
        self._gate = gate
        self._timings = timings

    async def done(self, queue: str, tokens: Sequence[Token]) -> None:
        """Let tokens go. In a bounded queue the places of their jobs are free when the fetch is answered."""
        if self._queues.bound(queue):
            await self._reader.all_done(tokens)
        else:
            for token in tokens:
                self._reader.done(token)

    def back(self, tokens: Iterable[Token]) -> None:
        """Put tokens back in their places."""
        for token in tokens:
            self._reader.back(token)

    async def stale(self, token: Token, stored: Stored) -> bool:
        """Answer for a token that needs no second look: its commit can't succeed any more, or it is old and has no job."""
        if not self._records.nearest_is_leader:
            stored = await self._records.leader_for_hint(token.job_id)
        if token.superseded(stored):
            if token.stands_for(stored.job):
                return False
            if stored.job is not None:
                await self.missed(stored.job)
            self._reader.done(token)
            return True
        if self._clock.now() - token.stored_at <= self._timings.young_ms:
            return False
        self._put_off(token)
        return True

    async def missed(self, job: Job) -> None:
        """Tell the gate of a job that asks for it that a token led to no claim."""
        if self._gate is not None and self._gate.asks(job):
            await self._gate.missed(job)

    def _put_off(self, token: Token) -> None:
        """Let an old token without its record come back later, or not at all: there is no job yet to reorder."""
        if self._clock.now() - token.stored_at > self._timings.drop_after_ms:
            log.warning("token without a job dropped", job_id=token.job_id)
            self._reader.done(token)
        else:
            self._reader.later(token, self._timings.park_s)
