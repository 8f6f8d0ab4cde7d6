"""Tells metrics how full the audit is."""

from __future__ import annotations

import asyncio

from ojs_engine.audit.fill import audit_fill
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics


class AuditRoom:
    """Looks now and then, for the gauges of one gateway."""

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
        metrics.AUDIT_FILL.set(fill.ratio)
        metrics.AUDIT_AGE.set(fill.age_ms / 1_000)
        metrics.AUDIT_PROMISED.set(fill.promised_ms / 1_000)
        await asyncio.sleep(self._every_s)
