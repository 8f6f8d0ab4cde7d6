"""The scheduler: makes jobs available whose delay or back-off is over, creates the jobs of cron entries, finishes batches.

Any number of them may run.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ojs_nats.dueloop import DueLoop
from ojs_nats.preparation import Preparation, configured_chain
from ojs_nats.timekeeping import Timekeeper
from ojs_nats.transitions import Liveness
from ojs_nats.wire.limits import Limits
from ojs_scheduler.crons import CronKeeper
from ojs_scheduler.limits import LimitKeeper

if TYPE_CHECKING:
    from ojs_nats.service import Service
    from ojs_nats.settings import Settings
    from ojs_nats.store import Store

__all__ = ["Scheduler", "build"]


class Scheduler:
    """Every kind of due messages, each with a loop of its own: a million delayed jobs don't hold up a tick."""

    def __init__(self, jobs: Timekeeper, crons: CronKeeper, batches: DueLoop, limits: LimitKeeper) -> None:
        self._loops = (jobs, crons, batches, limits)

    async def start(self) -> None:
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        await asyncio.gather(*(loop.stop() for loop in self._loops))


async def _no_liveness(_worker: str, _now: int) -> Liveness:
    """A scheduled or retryable job has no holder; should a job be active by now, its own timer is with the reaper."""
    return Liveness(seen_at=None, covered=False)


def build(store: Store, settings: Settings) -> Service:
    """A scheduler that is not started yet. Raises StartupProblem if an enqueue middleware can't be imported."""
    chain = configured_chain(settings)
    chain.freeze()
    prepare = Preparation(chain, Limits(), store.clock.now)
    outbox = store.outbox()
    batches = DueLoop("batch", outbox.messages, outbox.handle)
    return Scheduler(Timekeeper(store, "scheduler", _no_liveness), CronKeeper(store, prepare), batches, LimitKeeper(store))
