"""Whether each role of the system has a process: a system without one takes jobs, and leaves part of its work undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from ojs_core.base.loops import start_loop, stop_loop
from ojs_core.store.workers.presence import ROLES, Presence
from ojs_core.telemetry import metrics

log = structlog.get_logger(__name__)

PATIENCE: Final = 3
"""Looks at which a role was silent before that is told: processes start in any order, and are restarted."""
_WAITS: Final = {
    "gateway": "nobody hears workers and clients",
    "scheduler": "delayed jobs, retries and cron entries wait",
    "reaper": "jobs of workers that died, and time-outs, wait",
    "coordinator": "workflows stand still",
    "projector": "there are no events, lists or statistics",
    "webhooks": "webhooks get no events",
}


class Roles:
    """Looks at the services' beats now and then. `webhooks_wanted` says whether a system has work for that role."""

    def __init__(self, presence: Presence, webhooks_wanted: Callable[[], Awaitable[bool]]) -> None:
        self._presence = presence
        self._webhooks_wanted = webhooks_wanted
        self._silent: dict[str, int] = dict.fromkeys(ROLES, 0)
        self._task: asyncio.Task[None] | None = None
        self.processes: Mapping[str, int] = {}
        """Of each role, as of the last look."""

    @property
    def missing(self) -> list[str]:
        """The roles that nobody has been heard of for some time."""
        return [role for role, looks in self._silent.items() if looks >= PATIENCE]

    def start(self) -> None:
        self._task = start_loop("roles", self._run, tell=False)

    async def stop(self) -> None:
        await stop_loop(self._task)

    async def _run(self) -> None:
        await self.look()
        await asyncio.sleep(self._presence.timings.beat_s)

    async def look(self) -> None:
        """Count the processes of each role. Raises OjsError backend_unavailable."""
        live = await self._presence.by_role()
        self.processes = {role: live[role] for role in ROLES}
        for role, number in self.processes.items():
            metrics.SERVICES_UP.labels(role).set(number)
            before = self._silent[role]
            present = number or (role == "webhooks" and not await self._webhooks_wanted())
            self._silent[role] = 0 if present else before + 1
            if self._silent[role] == PATIENCE:
                log.error("no process of a role is running", role=role, effect=_WAITS[role])
            elif number and before >= PATIENCE:
                log.info("a role is there again", role=role)
