"""The reaper: ends what has run out of time - leases, timeouts, expiry - and recovers the jobs of dead workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_core.runtime.timekeeping import Timekeeper
from ojs_reaper.liveness import WorkerLiveness

if TYPE_CHECKING:
    from ojs_core.runtime.service import Service
    from ojs_core.runtime.settings import Settings
    from ojs_core.store.store import Store


def build(store: Store, settings: Settings) -> Service:
    del settings
    return Timekeeper(store, "reaper", WorkerLiveness(store).of)
