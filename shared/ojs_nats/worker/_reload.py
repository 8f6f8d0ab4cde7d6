"""For development: a worker that begins anew when a Python file changes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from ojs_nats._extras import extra
from ojs_nats._logging import get_logger

log = get_logger("ojs_nats.worker.reload")

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
_OTHERS: Final = (signal.SIGTSTP, signal.SIGCONT)


def run(command: Sequence[str], folder: Path) -> int:
    """The worker that `command` starts, until this process is told to stop; its exit code.

    After each change below `folder` it is told to terminate, so that its jobs end or are handed back, and started
    again; if it ends by itself, with the next change. Raises MissingDependencyError without the package watchfiles.
    """
    return asyncio.run(_Supervision(command).run(folder))


class _Supervision:
    def __init__(self, command: Sequence[str]) -> None:
        self._watching = extra("watchfiles", of="reload", what="--reload")
        self._command = command
        self._stop = asyncio.Event()
        self._worker: asyncio.subprocess.Process | None = None
        self._told: signal.Signals | None = None

    async def run(self, folder: Path) -> int:
        loop = asyncio.get_running_loop()
        for number in _STOPPING:
            loop.add_signal_handler(number, self._told_to_stop, number)
        for number in _OTHERS:
            loop.add_signal_handler(number, self._signal, number)
        changes: AsyncIterator[set[tuple[Any, str]]] = self._watching.awatch(
            folder, watch_filter=self._watching.PythonFilter(), stop_event=self._stop
        )
        self._worker = await self._started()
        async for changed in changes:
            files = sorted({str(Path(name).relative_to(folder)) for _, name in changed})
            log.info("the worker begins anew", changed=files)
            self._signal(signal.SIGTERM)
            await self._worker.wait()
            if self._stop.is_set():
                break
            self._worker = await self._started()
        return await self._worker.wait()

    async def _started(self) -> asyncio.subprocess.Process:
        worker = await asyncio.create_subprocess_exec(*self._command, start_new_session=True)
        if self._told is not None:  # since it began to start
            worker.send_signal(self._told)
        return worker

    def _told_to_stop(self, number: signal.Signals) -> None:
        self._told = number
        self._stop.set()
        self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
        if self._worker is not None and self._worker.returncode is None:
            self._worker.send_signal(number)
