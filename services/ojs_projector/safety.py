"""The safety net: hints that must be there and are not (architecture §8d). In normal running it finds nothing.

The index names suspects, the leader's record decides. What is issued again is a hint, so doing it once too often does no harm.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import structlog

from ojs_nats import metrics, transitions
from ojs_nats.errors import OjsError
from ojs_nats.job import Job, State
from ojs_nats.limits import policy_of
from ojs_nats.store import Store
from ojs_nats.store.limits import key_scope
from ojs_nats.store.names import ANY
from ojs_nats.store.tokens import Tokens
from ojs_nats.transitions import Moment, Transition
from ojs_nats.workflows import record as flows
from ojs_nats.workflows.record import Workflow
from ojs_projector import lists
from ojs_projector.crons import overdue
from ojs_projector.locks import settle, suspects
from ojs_projector.model import Model
from ojs_projector.workflows import have_ended, unchanged

__all__ = ["SafetyNet"]

log = structlog.get_logger(__name__)

TOKEN_GRACE_MS: Final = 5_000
TIMER_GRACE_MS: Final = 10_000
_AT_ONCE: Final = 100
"""Repairs of one kind in one round; the rest waits for the next."""
WORKFLOW_GRACE_MS: Final = 60_000
WORKFLOW_PAUSE_MS: Final = 300_000
"""No workflow is looked at twice within this time."""
_WORKFLOWS_AT_ONCE: Final = 20
_MEMBERS_AT_ONCE: Final = 500
_FIRST: Final = (-1, "")


class SafetyNet:
    """Looks for available jobs without a token, for deadlines that nothing will wake anybody for, and for workflows that have
    not heard of the end of their jobs.
    """

    def __init__(self, store: Store, model: Model) -> None:
        self._store = store
        self._model = model
        self._tokens = Tokens(store.link, store.config)
        self.found: Counter[str] = Counter()
        """What was repaired since the start: `token`, `timer`, `cron`, `workflow`."""
        self._crons_after = ""
        self._workflows_after = _FIRST
        self._workflows_since = -WORKFLOW_PAUSE_MS
        """When looking at them last began at the first."""

    async def look(self) -> None:
        """One round. Raises OjsError backend_unavailable."""
        for kind in list(lists.waiting_kinds(self._model)):
            # Nobody can fetch from a paused queue, so nothing waits for a token there.
            if not await self._store.queues.held(kind.queue):
                await self._look_at_tokens(kind)
        await self._look_at_timers()
        await self._look_at_crons()
        await self._look_at_workflows()
        await self._look_at_locks()

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
            self._count("token", job_id=job_id)

    async def _waits_for_a_limit(self, job: Job) -> bool:
        """Whether tokens of the job's key are put aside; its own may be among them, so a look is hinted at instead."""
        policy = policy_of(job) if job.rate_limit else None
        if policy is None or policy.key is None or not await self._store.held.count(key_scope(policy.key)):
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
            self._count("timer", job_id=job.id)

    async def _look_at_crons(self) -> None:
        late = self._store.clock.now() - TIMER_GRACE_MS
        tokens = overdue(self._model.db, late, self._crons_after, _AT_ONCE)
        self._crons_after = tokens[-1] if len(tokens) == _AT_ONCE else ""
        crons = self._store.crons
        for stored in (await crons.many(tokens)).values() if tokens else ():
            cron = stored.cron
            if cron is None or cron.timer is None or cron.timer.at >= late or await crons.waits(cron.name, cron.timer):
                continue
            try:
                if (await crons.get(cron.name)).timer != cron.timer:  # it was handled in this moment
                    continue
            except OjsError as error:
                if error.code != "not_found":
                    raise
                continue
            await crons.rearm(cron.name, cron.timer)
            self._count("cron", cron=cron.name)

    async def _look_at_workflows(self) -> None:
        """The next few of the running ones that have not changed for long."""
        now = self._store.clock.now()
        if self._workflows_after == _FIRST:
            if now < self._workflows_since + WORKFLOW_PAUSE_MS:
                return
            self._workflows_since = now
        before = now - WORKFLOW_GRACE_MS
        found = unchanged(self._model.db, before, self._workflows_after, _WORKFLOWS_AT_ONCE)
        for position in found:
            self._workflows_after = position
            await self._look_at_workflow(position[1], before)
        if len(found) < _WORKFLOWS_AT_ONCE:
            self._workflows_after = _FIRST

    async def _look_at_workflow(self, workflow_id: str, before: int) -> None:
        store = self._store
        try:
            record = (await store.workflows.get(workflow_id)).record
            # Jobs that are still being created are the timer's business.
            if record.terminal or record.growing or not await self._has_missed(record, before):
                return
            if await store.records.subjects(store.config.step(workflow_id, ANY)):  # the coordinator is away or slow
                return
            if await store.workflows.recheck(workflow_id):
                self._count("workflow", workflow_id=workflow_id)
        except OjsError as error:
            if error.code != "not_found":
                raise

    async def _look_at_locks(self) -> None:
        """Housekeeping: locks of unique jobs that nobody let go. What is found is no lost hint, and isn't counted as one."""
        now = self._store.clock.now()
        for suspect in suspects(self._model.db, now, _AT_ONCE):
            settle(self._model.db, suspect, await self._store.unique.locks.tidy(suspect.key), now)

    async def _has_missed(self, record: Workflow, before: int) -> bool:
        """Whether the index says that a job ended that the workflow still waits for."""
        queued = [node for node, letter in enumerate(record.states) if letter == flows.QUEUED]
        for start in range(0, len(queued), _MEMBERS_AT_ONCE):
            nodes = queued[start : start + _MEMBERS_AT_ONCE]
            ids = [flows.job_id(record.id, node, flows.run_of(record, node)) for node in nodes]
            if have_ended(self._model.db, ids, before):
                return True
            await asyncio.sleep(0)
        return False

    def _count(self, kind: str, **what: str) -> None:
        self.found[kind] += 1
        metrics.SAFETY_NET.labels(kind).inc()
        log.warning("a lost hint was issued again", kind=kind, **what)


def _token_at(job: Job) -> int:
    """When an available job was given its token (Unix ms), which may be after it became available."""
    return next((entry.at for entry in reversed(job.transitions) if entry.op == job.token), job.enqueued_at or 0)


class _MovedOn(Exception):
    """The record is not as the index had it."""
