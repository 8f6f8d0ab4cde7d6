"""A service in the process of `ojs-nats dev --together`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ojs_command.services import SERVICES
from ojs_core.base.loops import stop_tasks
from ojs_core.base.problems import StartupProblem
from ojs_core.runtime.service import Build, session
from ojs_core.runtime.settings import Settings
from ojs_core.runtime.stopping import SUPERVISED_STOP_SECONDS, Stopping
from ojs_core.runtime.supervised import ReadyLine


async def load_services() -> dict[str, Build]:
    """All of them by name, read beside the loop."""
    return await asyncio.to_thread(lambda: {entry.name: entry.load() for entry in SERVICES})


class ServiceTask:
    """Runs one service beside others."""

    def __init__(self, name: str, build: Build, settings: Settings) -> None:
        self.name = name
        self.url: str | None = None
        self._build = build
        self._settings = settings
        self._stopping = Stopping(SUPERVISED_STOP_SECONDS)
        self._task: asyncio.Task[bool] | None = None

    @property
    def pid(self) -> int | None:
        """Process id, None while it isn't running."""
        return None if self._task is None or self._task.done() else os.getpid()

    async def start(self) -> None:
        """Start it and return when it is ready. Raises `StartupProblem`."""
        ready: asyncio.Future[ReadyLine] = asyncio.get_running_loop().create_future()
        work = session(self.name, self._settings, self._build, self._stopping, ready.set_result)
        self._task = asyncio.create_task(work, name=self.name)
        either: set[asyncio.Future[Any]] = {self._task, ready}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await self._task
            raise StartupProblem(f"{self.name} was told to stop before it was ready")
        self.url = ready.result().url

    async def stop(self, seconds: float) -> None:
        """End it, by force after `seconds`."""
        self._stopping.request()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)
            await stop_tasks([self._task])
