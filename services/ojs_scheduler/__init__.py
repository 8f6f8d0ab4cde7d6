"""The scheduler: makes jobs available whose delay or back-off is over. Any number of them may run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_nats.timekeeping import Timekeeper
from ojs_nats.transitions import Liveness

if TYPE_CHECKING:
    from ojs_nats.service import Service
    from ojs_nats.settings import Settings
    from ojs_nats.store import Store

__all__ = ["build"]


async def _no_liveness(_worker: str, _now: int) -> Liveness:
    """A scheduled or retryable job has no holder; should a job be active by now, its own timer is with the reaper."""
    return Liveness(seen_at=None, covered=False)


def build(store: Store, settings: Settings) -> Service:
    del settings
    return Timekeeper(store, "scheduler", _no_liveness)
