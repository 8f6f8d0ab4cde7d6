"""The reaper: ends what has run out of time - leases, timeouts, expiry - and recovers the jobs of dead workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_nats.timekeeping import Timekeeper
from ojs_reaper.liveness import WorkerLiveness

if TYPE_CHECKING:
    from ojs_nats.service import Service
    from ojs_nats.settings import Settings
    from ojs_nats.store import Store

__all__ = ["build"]


def build(store: Store, settings: Settings) -> Service:
    del settings
    return Timekeeper(store, "reaper", WorkerLiveness(store).of)
