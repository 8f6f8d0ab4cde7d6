"""Acting on due timers: what scheduler and reaper have in common.

The record alone decides. A due message is let go when what follows from it is stored; until then it comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Service, State, Timer
from ojs_engine.domain.transitions import Liveness, Moment, Rearm, Transition
from ojs_engine.due.loop import DueLoop, DueLoopTimings
from ojs_engine.jetstream.due_messages import Due
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics

log = structlog.get_logger(__name__)

AskLiveness = Callable[[str, int], Awaitable[Liveness]]
"""(worker id, now) -> what is known of the worker."""

_ROUNDS: Final = 8
"""How often a job that keeps changing is looked at again before its due message waits for redelivery."""
_MAINTENANCE: Final = DueLoopTimings()
"""A copy of the record says whether maintenance is over."""
_RELEASE: Final = DueLoopTimings(held_s=1.0)
"""NATS itself is asked whether a restored system was released."""


class Timekeeper:
    """Takes one service's due messages in batches and applies what each job's record says is due."""

    def __init__(self, store: Store, service: Service, liveness: AskLiveness) -> None:
        self._store = store
        self._messages = store.due_messages(service)
        self._liveness = liveness
        # Under maintenance leases and limits of time go on, only what would start waits. A restored system waits whole.
        held, timings = store.queues.wait_for_release, _RELEASE
        if service == "scheduler":
            held, timings = store.queues.under_maintenance, _MAINTENANCE
        self._loop = DueLoop(service, self._messages, self._handle, held, timings=timings)
        self._lateness = metrics.DUE_LATENESS.labels(service)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        """Finish the batch in hand."""
        await self._loop.stop()

    async def _handle(self, batch: list[Due]) -> None:
        """Everything that one batch asks for, written together; conflicts are judged again."""
        handled: list[Due] = []
        waiting = batch
        for _ in range(_ROUNDS):
            found = await self._store.records.many([due.job_id for due in waiting])
            waiting = await self._round(waiting, found, handled)
            if not waiting:
                break
        await self._messages.done(handled)

    async def _round(self, batch: list[Due], found: dict[str, Stored], handled: list[Due]) -> list[Due]:
        commits: list[tuple[Due, Transition, int, str]] = []
        early: list[tuple[Due, Stored, Timer]] = []
        for due in batch:
            moment = self._store.clock.moment(due.at)
            try:
                stored, decision = await self._judge(found[due.job_id], due.job_id, moment)
            except OjsError:
                raise
            except Exception:  # one job's trouble must not keep the others of its batch waiting
                log.exception("due message can't be judged and will come back", job_id=due.job_id)
                continue
            match decision:
                case Transition():
                    commits.append((due, decision, stored.sequence, moment.op))
                case Rearm(timer):
                    early.append((due, stored, timer))
                case None:
                    await self._tend(due, stored)
                    handled.append(due)
        await asyncio.gather(*(self._store.committer.rearm(due.job_id, timer) for due, _, timer in early))
        for due, stored, _ in early:
            await self._tend(due, stored)
            handled.append(due)
        outcomes = await self._store.committer.commit_all([commit[1:] for commit in commits])
        again: list[Due] = []
        for (due, transition, _, _), outcome in zip(commits, outcomes, strict=True):
            if isinstance(outcome, int):
                handled.append(due)
                self._measure(found[due.job_id])
                log.debug("timer applied", job_id=due.job_id, entry=transition.job.transitions[-1].event)
            elif isinstance(outcome, Conflict):
                again.append(due)
            else:
                log.warning("timer waits", job_id=due.job_id, reason=outcome.message)
        return again

    def _measure(self, before: Stored) -> None:
        """Note how late a deadline was acted on; `before` is the record that carried it."""
        if before.job is not None and before.job.timer is not None:
            self._lateness.observe(max(0, self._store.clock.now() - before.job.timer.at) / 1_000)

    async def _judge(self, stored: Stored, job_id: str, moment: Moment) -> tuple[Stored, Transition | Rearm | None]:
        """What is due by the record; that nothing is, or not yet, takes the leader's word."""
        decision = await self._decide(stored.job, stored.sequence, moment) if stored.job is not None else None
        if not isinstance(decision, Transition) and not self._store.records.nearest_is_leader:
            stored = await self._store.records.leader_for_hint(job_id)
            decision = await self._decide(stored.job, stored.sequence, moment) if stored.job is not None else None
        return stored, decision

    async def _decide(self, job: Job, revision: int, moment: Moment) -> Transition | Rearm | None:
        worker = transitions.needs_liveness(job, moment.now, moment.workers)
        liveness = await self._liveness(worker, moment.now) if worker is not None else None
        return transitions.due(job, moment, liveness, revision)

    async def _tend(self, due: Due, stored: Stored) -> None:
        """A message that came before may have been handled by a process that died between record and token. So may one as
        old as a second delivery: nats-server forgets the first when it is started again.
        """
        old_ms = 1_000 * self._messages.timings.ack_wait_s
        again = due.deliveries > 1 or self._store.clock.now() - due.at >= old_ms
        if again and stored.job is not None and stored.job.state is State.AVAILABLE:
            await self._store.committer.repeat_token(stored.job, stored.sequence)
