"""Whether nats-server shows that it has lost something, for health answers."""

from __future__ import annotations

import asyncio

import structlog

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.store.store import Store

log = structlog.get_logger(__name__)


class Damage:
    """Looks now and then, since a health answer must not wait for a stream without a leader."""

    def __init__(self, store: Store, every_s: float) -> None:
        self._every_s = every_s
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self.found: str | None = None
        """As of the last look that was answered."""

    def start(self) -> None:
        self._task = start_loop("damage", self.look, every_s=self._every_s, tell=False)

    async def stop(self) -> None:
        await stop_loop(self._task)

    async def look(self) -> None:
        """Ask for the streams. Raises OjsError backend_unavailable."""
        found = await self._store.damage()
        if found is not None and found != self.found:
            log.error("nats-server has lost data", damage=found)
        self.found = found
