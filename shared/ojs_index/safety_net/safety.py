"""The safety net: hints that must be there and are not (docs/adr/028). In normal running it finds nothing.

The index names suspects, the leader's record decides. What is issued again is a hint, so doing it once too often does
no harm.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import structlog

from ojs_engine.domain.job import State, Timer
from ojs_engine.store.records.writer import CHUNK
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_index.followed import Followed
from ojs_index.reading import lists
from ojs_index.safety_net.lost_tokens import LostToken, LostTokens, LostTokenTimings
from ojs_index.sqlite.model import Model
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)


class SafetyTimings(Timings, frozen=True, kw_only=True):
    """How long a hint has to be late before it is taken for lost, and how many are checked in a round."""

    tokens: LostTokenTimings = LostTokenTimings()
    """Tokens."""
    timer_grace_ms: int = 10_000
    """How long a timer has to be late before it is missed."""
    at_once: int = 100
    """Repairs of one kind in one round; the rest waits for the next."""


class SafetyNet:
    """Looks for available jobs without a token, for deadlines that nothing will wake anybody for, and for lost hints of
    features.
    """

    def __init__(
        self,
        store: Store,
        model: Model,
        followed: Sequence[Followed],
        timings: SafetyTimings,
        of_features: tuple[Timings, ...],
    ) -> None:
        self._timings = timings
        self._store = store
        self._model = model
        self._lost_tokens = LostTokens(store, model, timings.tokens)
        self.found: Counter[str] = Counter()
        """What was repaired since the start: `token`, `timer`, and what features count."""
        self._timers_after = lists.FIRST
        self._repairs = [one.repairs(store, model, self._count, of_features) for one in followed if one.repairs is not None]
        self._tidying = [one.tidying(store, model, of_features) for one in followed if one.tidying is not None]
        for one in followed:
            if one.repairs is not None:
                metrics.SAFETY_NET.labels(one.reader.kind)  # so that the first find is an increase

    async def look(self) -> None:
        """One round. Raises OjsError backend_unavailable."""
        await self._look_at_tokens()
        await self._look_at_timers()
        for repairs in (*self._repairs, *self._tidying):
            await repairs.look()

    async def _look_at_tokens(self) -> None:
        async for lost in self._lost_tokens.look():
            for start in range(0, len(lost), CHUNK):
                await self._repeat_tokens(lost[start : start + CHUNK])

    async def _repeat_tokens(self, lost: Sequence[LostToken]) -> None:
        """Publish the tokens that their jobs still need, in order."""
        found = await self._store.records.surely([one.job_id for one in lost])
        waiting = [
            (job, stored.sequence)
            for job_id, word in lost
            if (job := (stored := found[job_id]).job) is not None and job.state is State.AVAILABLE and job.token == word
        ]
        await asyncio.gather(*(self._store.committer.repeat_token(*one) for one in waiting))
        if waiting:
            first, _ = waiting[0]
            self._count("token", len(waiting), queue=first.queue, job_id=first.id)

    async def _look_at_timers(self) -> None:
        late = self._store.clock.now() - self._timings.timer_grace_ms
        found = lists.long_due(self._model, late, self._timings.at_once, self._timers_after)
        self._timers_after = found[-1] if len(found) == self._timings.at_once else lists.FIRST
        for _, job_id in found:
            before = await self._store.records.leader_for_hint(job_id)
            timer = None if before.job is None else before.job.timer
            if timer is None or timer.at >= late or await self._wakes(job_id, timer):
                continue
            # A message leaves when what follows from it is stored: the record is read once more after there was none.
            if (await self._store.records.leader_for_hint(job_id)).sequence == before.sequence:
                await self._store.committer.rearm(job_id, timer)
                self._count("timer", job_id=job_id)

    async def _wakes(self, job_id: str, timer: Timer) -> bool:
        """Whether a job's timer is live, or its message will come to its service, which may be away or slow."""
        if timer.every_s is not None:  # the record rings by itself as long as it is there
            return True
        config, records = self._store.config, self._store.records
        # One of them is always there: a message is stored before its timer leaves, and goes after it has been set again.
        live, due = config.timer(job_id, timer.op), config.due(timer.service, job_id)
        for hint in (live, due, live):
            if await records.leader_raw(hint) is not None:
                return True
        return False

    def _count(self, kind: str, number: int = 1, **what: str) -> None:
        self.found[kind] += number
        metrics.SAFETY_NET.labels(kind).inc(number)
        log.warning("a lost hint was issued again", kind=kind, number=number, **what)
