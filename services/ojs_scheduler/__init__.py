"""The scheduler: makes jobs available whose delay or back-off is over, and runs the loops of features, such as that
which lets blocked jobs go on.

Any number of them may run.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.members import not_honoured
from ojs_engine.domain.transitions import Liveness
from ojs_engine.due.timekeeping import Timekeeper
from ojs_engine.jetstream.api import purge_unheard
from ojs_engine.jetstream.consumers import remove
from ojs_engine.operations.job_checks import job_check
from ojs_features.all import FEATURES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ojs_engine.base.service import Service
    from ojs_engine.store.store import Store
    from ojs_runtime.settings import Settings


log = structlog.get_logger(__name__)

_BATCH: Final = "batch"
"""The consumer by which schedulers before 0.3.0 finish batches."""


class Scheduler:
    """Every kind of due messages, each with a loop of its own: a million delayed jobs don't hold up a tick."""

    def __init__(self, store: Store, jobs: Timekeeper, of_features: Iterable[Service]) -> None:
        self._store = store
        self._loops: list[Service] = [jobs, *of_features]

    async def start(self) -> None:
        """Take up the work, and take away what earlier versions left to finish batches: the safety net does that."""
        nats, stream = self._store.nats, self._store.config.records_stream
        try:
            await remove(nats, stream, [_BATCH])
            purge_unheard(nats, stream, self._store.config.left_by_batches)
        except OjsError as error:
            log.warning("what earlier versions left of batches stays until the next start", reason=error.message)
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        await asyncio.gather(*(loop.stop() for loop in self._loops))


async def _no_liveness(_worker: str, _now: int) -> Liveness:
    """A scheduled or retryable job has no holder; should a job be active by now, its own timer is with the reaper."""
    return Liveness(seen_at=None, covered=False)


def build(store: Store, settings: Settings) -> Service:
    """Return a scheduler that is not started yet."""
    checks = [one for feature in FEATURES for one in feature.job_checks]
    check = job_check(store, checks, settings.strict_mode, not_honoured({feature.name for feature in FEATURES}))
    jobs = Timekeeper(store, "scheduler", _no_liveness)
    loops = [loop(store, check) for feature in FEATURES for loop in feature.loops]
    return Scheduler(store, jobs, loops)
