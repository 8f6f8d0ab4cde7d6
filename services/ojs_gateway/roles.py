"""Checks that each role of the system has a process: a system without one leaves part of its work undone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import structlog

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.store.workers.presence import ROLES
from ojs_engine.telemetry import metrics

if TYPE_CHECKING:
    from ojs_engine.store.store import Store
    from ojs_features.plug import Process

log = structlog.get_logger(__name__)

PATIENCE: Final = 3
"""Looks at which a role was silent before that is told: processes start in any order, and are restarted."""
_WAITS: Final = {
    "gateway": "nobody hears workers and clients",
    "scheduler": "delayed jobs, retries and cron entries wait",
    "reaper": "jobs of workers that died, and time-outs, wait",
    "projector": "there are no events, lists or statistics",
}


class Roles:
    """Looks at the services' beats now and then."""

    def __init__(self, store: Store, processes: Iterable[Process]) -> None:
        """`processes` are those of features: a role is missed while it has work."""
        self._store = store
        self._presence = store.presence
        self._of_features = {process.role: process for process in processes}
        self.without = {role: process.without for role, process in self._of_features.items()}
        """Consequences of a missing role of a feature, by the role."""
        self._silent: dict[str, int] = dict.fromkeys((*ROLES, *self._of_features), 0)
        self._task: asyncio.Task[None] | None = None
        self.processes: Mapping[str, int] = {}
        """Numbers of processes by role, as of the last look."""

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
        self.processes = {role: live[role] for role in self._silent}
        for role, number in self.processes.items():
            metrics.SERVICES_UP.labels(role).set(number)
            before = self._silent[role]
            present = number or not await self._wanted(role)
            self._silent[role] = 0 if present else before + 1
            if self._silent[role] == PATIENCE:
                log.error("no process of a role is running", role=role, effect=(_WAITS | self.without)[role])
            elif number and before >= PATIENCE:
                log.info("a role is there again", role=role)

    async def _wanted(self, role: str) -> bool:
        process = self._of_features.get(role)
        return process is None or await process.wanted(self._store)
