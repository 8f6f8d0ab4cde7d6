"""The reaper: ends what has run out of time - leases, timeouts, expiry - and recovers the jobs of dead workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_engine.due.timekeeping import Timekeeper
from ojs_reaper.liveness import WorkerLiveness

if TYPE_CHECKING:
    from ojs_engine.base.service import Service
    from ojs_engine.store.store import Store
    from ojs_runtime.settings import Settings


def build(store: Store, settings: Settings) -> Service:
    del settings
    return Timekeeper(store, "reaper", WorkerLiveness(store).of)
