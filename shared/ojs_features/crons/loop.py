"""Acting on due cron entries: each run is stored in its entry, then its job is created, then the message goes."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from ojs_engine.base.service import Service
from ojs_engine.due.loop import DueLoop, contained
from ojs_engine.jetstream.due_messages import Due
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_features.crons import ticks
from ojs_features.crons.record import Cron, CronRun, CronTimer
from ojs_features.crons.step import Step
from ojs_features.crons.store import CronDue, Crons, JobCheck, StoredCron
from ojs_features.crons.timings import CronTimings

log = structlog.get_logger(__name__)

_ROUNDS: Final = 8
"""How often an entry that keeps changing is looked at again before its message waits for redelivery."""
_MANY_WAITING: Final = 2
_LATENESS: Final = metrics.DUE_LATENESS.labels("cron")


class CronWorker:
    """Takes the due messages of cron entries. Any number of keepers may run; the record decides who made which tick."""

    def __init__(self, store: Store, check: JobCheck) -> None:
        self._timings = store.bucket.timings(CronTimings)
        self._store = store
        self._crons = store.of(Crons)
        self._check = check
        self._messages = self._crons.due_messages()
        self._loop = DueLoop("cron", self._messages, self._handle, store.queues.under_maintenance)
        self._handled: list[Due] = []
        self._release: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        """Finish the batch in hand."""
        await self._loop.stop()
        if self._release is not None:
            await asyncio.wait([self._release])

    async def _handle(self, batch: list[Due]) -> None:
        """All of a batch side by side; what fails comes back, what meets a conflict is judged again."""
        waiting = batch
        for _ in range(_ROUNDS):
            found = await self._crons.many(list({CronDue.of(due.job_id).token for due in waiting}))
            outcomes = await asyncio.gather(*(self._one(due, found) for due in waiting))
            self._let_go([due for due, done in zip(waiting, outcomes, strict=True) if done])
            waiting = [due for due, done in zip(waiting, outcomes, strict=True) if done is False]
            if not waiting:
                return

    def _let_go(self, handled: list[Due]) -> None:
        self._messages.answered(handled)
        self._handled += handled
        if self._handled and (self._release is None or self._release.done()):
            self._release = asyncio.create_task(self._release_soon(), name="cron-release")

    async def _release_soon(self) -> None:
        """Deleting messages can wait; a thousand entries that are due with these can't."""
        while self._handled:
            await asyncio.sleep(self._timings.release_s)
            handled, self._handled = self._handled, []
            await self._messages.done(handled)

    async def _one(self, due: Due, found: dict[str, StoredCron]) -> bool | None:
        """True: let the message go; False: judge it again; None: leave it to come back."""
        fired = CronDue.of(due.job_id)
        stored = found.get(fired.token)
        if stored is None:
            return None
        if stored.cron is None:
            return True
        return await contained("cron entry", stored.cron.name, self._judged(stored.cron, stored.sequence, fired.op, due.at))

    async def _judged(self, cron: Cron, sequence: int, op: str, fired_at: int) -> bool:
        try:
            await self._judge(cron, sequence, op, fired_at)
        except Conflict:
            return False
        return True

    async def _judge(self, cron: Cron, sequence: int, op: str, fired_at: int) -> None:
        run = next((run for run in reversed(cron.log) if run.hint == op), None)
        if run is not None:  # the run is stored, but whoever stored it may not have come to its job
            await self._crons.ensure(cron, run, self._check)
            return
        if cron.deleted:
            return
        self._store.room.check()  # a tick that can't have its job now comes back, to be judged by what is late by then
        previous = await self._crons.previous(cron, self._check)
        moment = self._store.clock.moment(max(fired_at, self._store.clock.now()))
        match ticks.tick(cron, moment, previous, op):
            case Step() as step:
                await self._crons.commit(step, sequence, moment.op)
                self._tell(cron, step)
                if step.run is not None:
                    await self._crons.ensure(step.record, step.run, self._check)
            case CronTimer() as timer:
                await self._crons.rearm(cron.name, timer)
            case None:
                pass

    def _tell(self, before: Cron, step: Step) -> None:
        record = step.record
        for entry in record.log[-(record.n - before.n) :] if record.n > before.n else ():
            _tell(record, entry)
        if len(record.waiting) > max(_MANY_WAITING, len(before.waiting)):
            log.warning("runs of a cron entry pile up behind a job", cron=record.name, waiting=len(record.waiting))


def _tell(cron: Cron, entry: CronRun) -> None:
    if entry.outcome == "triggered":
        _LATENESS.observe(max(0, entry.at - entry.tick) / 1_000)
        log.debug("cron entry triggered", cron=cron.name, job_id=entry.job_id, late_ms=entry.at - entry.tick)
    else:
        log.info("cron entry skipped", cron=cron.name, reason=entry.reason, count=entry.count)


def cron_loop(store: Store, check: JobCheck) -> Service:
    """Return the loop that takes due messages of crons."""
    return CronWorker(store, check)
