"""The safety net: hints that must be there and are not (architecture §8d). In normal running it finds nothing.

The index names suspects, the leader's record decides. What is issued again is a hint, so doing it once too often does no harm.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import structlog

from ojs_nats import metrics, transitions
from ojs_nats.errors import OjsError
from ojs_nats.job import Job, State
from ojs_nats.limits import policy_of
from ojs_nats.store import Store
from ojs_nats.store.gate import key_scope
from ojs_nats.store.tokens import Tokens
from ojs_nats.transitions import Moment, Transition
from ojs_projector import lists
from ojs_projector.model import Model

__all__ = ["SafetyNet"]

log = structlog.get_logger(__name__)

TOKEN_GRACE_MS: Final = 5_000
TIMER_GRACE_MS: Final = 10_000
_AT_ONCE: Final = 100
"""Repairs of one kind in one round; the rest waits for the next."""


class SafetyNet:
    """Looks for available jobs without a token, and for deadlines that nothing will wake anybody for."""

    def __init__(self, store: Store, model: Model) -> None:
        self._store = store
        self._model = model
        self._tokens = Tokens(store.link, store.config)
        self.found: Counter[str] = Counter()
        """What was repaired since the start: `token`, `timer`."""

    async def look(self) -> None:
        """One round. Raises OjsError backend_unavailable."""
        for kind in list(lists.waiting_kinds(self._model)):
            # Nobody can fetch from a paused queue, so nothing waits for a token there.
            if not await self._store.queues.held(kind.queue):
                await self._look_at_tokens(kind)
        await self._look_at_timers()

    async def _look_at_tokens(self, kind: lists.Waiting) -> None:
        """Tokens are handed out in order, so a job that became available before the first stored one has none."""
        # The first token is read before the list: one that comes later can only be newer.
        first = await self._tokens.first_at(kind.queue, kind.priority)
        before = (self._store.clock.now() if first is None else first) - TOKEN_GRACE_MS
        for job_id in lists.waiting_before(self._model, kind, before, _AT_ONCE):
            await self._give_token(job_id, before)

    async def _give_token(self, job_id: str, before: int) -> None:
        def decide(job: Job, moment: Moment) -> Transition:
            if job.state is not State.AVAILABLE or _token_at(job) >= before:
                raise _MovedOn
            return transitions.reissue(job, moment)

        try:
            found = await self._store.records.leader(job_id)
            if found.job is None:
                return
            decide(found.job, self._store.clock.moment())
            if await self._waits_for_a_limit(found.job):
                return
            await self._store.jobs.change(job_id, decide)
        except _MovedOn:
            return
        except OjsError as error:
            if error.code not in {"conflict", "not_found"}:
                raise
        else:
            self._count("token", job_id)

    async def _waits_for_a_limit(self, job: Job) -> bool:
        """Whether tokens of the job's key are put aside; its own may be among them, so a look is hinted at instead."""
        policy = policy_of(job) if job.rate_limit else None
        if policy is None or policy.key is None or not await self._store.limits.held_count(key_scope(policy.key)):
            return False
        await self._store.limits.hint(key_scope(policy.key))
        return True

    async def _look_at_timers(self) -> None:
        now = self._store.clock.now()
        for job_id in lists.long_due(self._model, now - TIMER_GRACE_MS, _AT_ONCE):
            job = (await self._store.records.leader(job_id)).job
            if job is None or job.timer is None or job.timer.at >= now - TIMER_GRACE_MS:
                continue
            config = self._store.config
            hints = (config.timer(job.id, job.timer.op), config.due(job.timer.service, job.id))
            present = [await self._store.records.leader_raw(hint) for hint in hints]
            if any(present):  # it has not been handled yet; the service is away or slow
                continue
            await self._store.committer.rearm(job.id, job.timer)
            self._count("timer", job.id)

    def _count(self, kind: str, job_id: str) -> None:
        self.found[kind] += 1
        metrics.SAFETY_NET.labels(kind).inc()
        log.warning("a lost hint was issued again", kind=kind, job_id=job_id)


def _token_at(job: Job) -> int:
    """When an available job was given its token (Unix ms), which may be after it became available."""
    return next((entry.at for entry in reversed(job.transitions) if entry.op == job.token), job.enqueued_at or 0)


class _MovedOn(Exception):
    """The record is not as the index had it."""
