"""Telling of pushes that a full queue refuses, not once for each of a flood of them (ojs-backpressure §10.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.store.announce import announce
from ojs_link.timings import Timings

if TYPE_CHECKING:
    from ojs_engine.store.store import Store

_MOST: Final = 10_000
"""Queues whose last refusal is remembered."""


class RejectionTimings(Timings, frozen=True, kw_only=True):
    """How often a queue's refusals are announced."""

    every_s: float = 1.0
    """Between two events of one queue."""


class RejectionEvents:
    """One event for each queue and second: `backpressure.rejected`."""

    def __init__(self, store: Store, timings: RejectionTimings = RejectionTimings()) -> None:
        self._every_s = timings.every_s
        self._store = store
        self._told: dict[str, float] = {}

    async def tell(self, error: OjsError, drafts: Sequence[Job]) -> None:
        """Do nothing unless `error` says that the queue of one of the drafts is full."""
        now = asyncio.get_running_loop().time()
        draft = next((draft for draft in drafts if draft.queue == error.details.get("queue")), drafts[0])
        if error.code != "queue_full" or now - self._told.get(draft.queue, -self._every_s) < self._every_s:
            return
        if len(self._told) >= _MOST:
            self._told.clear()
        self._told[draft.queue] = now
        data = {**error.details, "job_type": draft.type}
        await announce(self._store, "backpressure.rejected", scope=draft.queue, subject=draft.queue, data=data)
