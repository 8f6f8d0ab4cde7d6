"""Tells metrics how full the audit is."""

from __future__ import annotations

import asyncio

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.store.store import Store
from ojs_features.audit import metrics
from ojs_features.audit.fill import audit_fill


class Gauges:
    """Measures it now and then, for one gateway."""

    def __init__(self, store: Store, every_s: float) -> None:
        self._every_s = every_s
        self._store = store
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = start_loop("audit-room", self._run, tell=False)

    async def stop(self) -> None:
        await stop_loop(self._task)

    async def _run(self) -> None:
        fill = await audit_fill(self._store.nats, self._store.config, self._store.clock.now())
        metrics.FILL.set(fill.ratio)
        metrics.AGE.set(fill.age_ms / 1_000)
        metrics.PROMISED.set(fill.promised_ms / 1_000)
        await asyncio.sleep(self._every_s)
