"""The age of the last backup, for the findings and the metric of one gateway."""

from __future__ import annotations

import asyncio

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.store.backup.last import last_backup
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics


class BackupAge:
    """Reads the record of the last backup now and then, and when it is asked."""

    def __init__(self, store: Store, every_s: float) -> None:
        self._every_s = every_s
        self._store = store
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = start_loop("backup-age", self._run, tell=False)

    async def stop(self) -> None:
        await stop_loop(self._task)

    async def look(self) -> int | None:
        """Return the age (ms), None if no backup was made, and set the metric. Raises OjsError backend_unavailable."""
        at = await last_backup(self._store.nats, self._store.config)
        if at is None:
            metrics.BACKUP_AGE.forget()
            return None
        age_ms = max(0, self._store.clock.now() - at)
        metrics.BACKUP_AGE.set(age_ms / 1_000)
        return age_ms

    async def _run(self) -> None:
        await self.look()
        await asyncio.sleep(self._every_s)
