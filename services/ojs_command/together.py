"""Services in one process: what `ojs-nats services` and `ojs-nats dev --together` run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from msgspec.structs import replace
from structlog.contextvars import bound_contextvars

from ojs_command.services import SERVICES
from ojs_command.supervision import Kept
from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import stop_tasks
from ojs_engine.base.problems import StartupProblem
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from ojs_runtime.service import CUT_OFF, Build, session
from ojs_runtime.service_entry import ServiceEntry
from ojs_runtime.settings import Settings
from ojs_runtime.stopping import Stopping
from ojs_runtime.supervised import ReadyLine

_CRASHED: Final = "it has crashed; the log says where"

log = structlog.get_logger(__name__)


async def load_services(entries: Iterable[ServiceEntry] = SERVICES) -> dict[str, Build]:
    """Return them by name, read beside the loop."""
    return await asyncio.to_thread(lambda: {entry.name: entry.load() for entry in entries})


class ServiceTask(Kept):
    """Runs one service beside others, with a connection to NATS of its own. Its log lines have `role`."""

    def __init__(self, name: str, build: Build, settings: Settings, stop_seconds: float) -> None:
        """`stop_seconds` is what it has to finish what is in flight, once it was told to stop."""
        super().__init__(name)
        self.url: str | None = None
        self.clean = True
        """Whether all of its work could be finished, once it has ended."""
        self._build = build
        self._settings = settings
        self._stopping = Stopping(stop_seconds)
        self._task: asyncio.Task[bool] | None = None
        self._store: Store | None = None
        self._reason = "it is being started"
        """Why it isn't ready, while it isn't."""

    @property
    def pid(self) -> int | None:
        return None if self._task is None or self._task.done() else os.getpid()

    async def trouble(self) -> str | None:
        """Return why it can't work now: it doesn't run, or NATS stores nothing."""
        if self._store is None:
            return self._reason
        try:
            await self._store.ready()
        except OjsError as error:
            return error.message
        return None

    async def _launch(self) -> None:
        ready: asyncio.Future[ReadyLine] = asyncio.get_running_loop().create_future()

        def works(line: ReadyLine, store: Store) -> None:
            self._store = store
            ready.set_result(line)

        with bound_contextvars(role=self.name):
            work = session(self.name, self._settings, self._build, STORE_FEATURES, self._stopping, works)
            self._task = asyncio.create_task(work, name=f"service-{self.name}")
        either: set[asyncio.Future[Any]] = {self._task, ready}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            raise StartupProblem(self._ended(self._task))
        self.url = ready.result().url
        if self.name == "gateway" and self.url is not None:  # started again, it keeps its port: clients have its URL
            self._settings = replace(self._settings, port=urlsplit(self.url).port)

    async def _while_well(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task})
            self._ended(self._task)

    async def _end(self, seconds: float) -> None:
        self._stopping.request()
        if self._task is None:
            return
        task = self._task
        await asyncio.wait({task}, timeout=seconds)
        self.clean = task.done() and _finished(task)
        if task.done():
            self._ended(task)
        else:
            log.error(CUT_OFF, role=self.name)
        await stop_tasks([task])

    def _ended(self, task: asyncio.Task[bool]) -> str:
        """Write down why it has ended, and return that."""
        self._task = self._store = None
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, StartupProblem):
            self._reason = str(problem)
        elif problem is not None or not self._stopping.requested:
            log.error("died", child=self.name, exc_info=problem)
            self._reason = _CRASHED
        else:
            self._reason = "it was told to stop"
        return self._reason


def _finished(task: asyncio.Task[bool]) -> bool:
    """Return whether a session has finished all of its work. One that couldn't start has none."""
    if task.cancelled():
        return False
    problem = task.exception()
    return task.result() if problem is None else isinstance(problem, StartupProblem)
