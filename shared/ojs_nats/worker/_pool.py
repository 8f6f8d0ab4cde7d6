"""Processes for handlers that compute: each has a Python of its own, which can be ended at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from typing import Any, Final

import msgspec

from ojs_api.checkpoints import SAVE as SAVE_CHECKPOINT
from ojs_api.progress import REPORT as REPORT_PROGRESS
from ojs_nats._logging import get_logger
from ojs_nats._operations import Request
from ojs_nats.definitions import JobDefinition
from ojs_nats.errors import OjsError, RefusedError
from ojs_nats.worker._attempts import Attempt
from ojs_nats.worker._frames import (
    HEAD_BYTES,
    Answered,
    Logged,
    Raised,
    Returned,
    Run,
    Stop,
    Told,
    ToProcess,
    ToWorker,
    frame,
    length,
)
from ojs_nats.worker._outcome import FailedInProcess, NotHere, SoftTimeout
from ojs_nats.worker._timings import WorkerTimings

log = get_logger("ojs_nats.worker.pool")

_BEGIN: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from ojs_nats.worker._child import main; main(int(sys.argv[2]))"
)
_OPERATIONS: Final = {operation.name: operation for operation in (REPORT_PROGRESS, SAVE_CHECKPOINT)}


class ProcessDied(OjsError):
    """The process that ran the handler has ended: the handler crashed, or the system was out of memory."""


class Pool:
    """Up to `size` processes, which are started when they are needed, and kept. What isn't left by itself is killed:
    then the next handler gets a new one. They aren't forks: a fork has the memory of threads that it hasn't got.
    """

    def __init__(self, size: int, worker_id: str, timings: WorkerTimings) -> None:
        self._timings = timings
        self._worker_id = worker_id
        self._room = asyncio.Semaphore(size)
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()

    async def run(self, definition: JobDefinition[Any, Any], attempt: Attempt) -> Any:
        """Run the handler, and return what it returns. When this is cancelled, the process is
        killed.

        Raises FailedInProcess, ProcessDied.
        """
        module, name = definition.handler.__module__, definition.handler.__qualname__
        if module == "__main__":
            raise LookupError(f"{name} is in the program that was started: a job that runs in a process lies in a module")
        level = logging.getLogger().getEffectiveLevel()
        async with self._room:
            process = await self._one()
            try:
                run = Run(module, name, attempt.context.job, self._worker_id, attempt.context.began, level)
                ended = await process.run(run, attempt)
            except BaseException:
                await asyncio.shield(self._end(process))
                raise
            self._idle.append(process)
        if isinstance(ended, Raised):
            raise FailedInProcess(ended.members)
        return ended.result

    async def close(self) -> None:
        await asyncio.gather(*(self._end(process) for process in tuple(self._all)))

    async def _one(self) -> _Process:
        while self._idle:
            process = self._idle.pop()
            if process.alive:
                return process
            await self._end(process)
        try:
            process = await _Process.started(self._timings.process_end_s)
        except OSError as error:  # it isn't the job's fault
            raise NotHere(f"no process can be started: {error}", self._timings.away_ms) from error
        self._all.add(process)
        return process

    async def _end(self, process: _Process) -> None:
        await process.end()
        self._all.discard(process)


class _Process:
    def __init__(self, end_s: float, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._end_s = end_s
        self._process = process
        self._reader = reader
        self._writer = writer
        self._closing = asyncio.create_task(self._close_behind())

    @classmethod
    async def started(cls, end_s: float) -> _Process:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-c",
                    _BEGIN,
                    json.dumps([place for place in sys.path if isinstance(place, str)]),  # Python looks at no other
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # what a terminal sends is for the worker
                )
            except BaseException:
                ours.close()
                raise
        return cls(end_s, process, *await asyncio.open_connection(sock=ours))

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._reader.at_eof()

    async def run(self, run: Run, attempt: Attempt) -> Returned | Raised:
        attempt.soft = lambda: self._say(Stop())
        try:
            self._say(run)
            if isinstance(attempt.context.stopped_by, SoftTimeout):  # while the process started
                self._say(Stop())
            while True:
                said = await self._heard()
                if isinstance(said, Returned | Raised):
                    return said
                if isinstance(said, Logged):
                    _log(attempt.context.log if said.job_id == run.job.id else log, said)
                else:
                    self._say(await _answered(said, attempt))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ProcessDied(await self._death()) from None
        except ValueError as error:
            raise ProcessDied(f"the handler wrote to a descriptor that isn't its own, and so to the worker: {error}") from None
        finally:
            attempt.soft = None

    async def _death(self) -> str:
        try:
            async with asyncio.timeout(self._end_s):
                return f"the handler's process ended{_how(await self._process.wait())}"
        except TimeoutError:
            return "the handler's process has closed its connection to the worker"

    def _say(self, said: ToProcess) -> None:
        self._writer.write(frame(said))

    async def _heard(self) -> ToWorker:
        size = length(await self._reader.readexactly(HEAD_BYTES))
        said: ToWorker = msgspec.json.decode(await self._reader.readexactly(size), type=ToWorker)
        return said

    async def end(self) -> None:
        """Kill the process, and those that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._closing.cancel()
        self._writer.close()

    async def _close_behind(self) -> None:
        """Close the connection when the process has ended: one that it forked may have it open."""
        await self._process.wait()
        await asyncio.sleep(self._end_s)  # it may have said something last
        self._writer.transport.abort()


def _log(to: Any, line: Logged) -> None:
    try:
        getattr(to, line.level)(line.event, **line.members)
    except TypeError:  # a member is called as a parameter of the logger
        getattr(to, line.level)(line.event, members=line.members)


async def _answered(told: Told, attempt: Attempt) -> Answered:
    job = attempt.job
    try:
        await attempt.line.send(Request(_OPERATIONS[told.operation], {"job_id": job.id}, told.body, job.queue))
    except RefusedError as error:
        return Answered(str(error), error.code, error.status or 0)
    except OjsError as error:
        return Answered(str(error))
    return Answered()


def _how(code: int) -> str:
    if code >= 0:
        return f" with exit code {code}: handlers raise, or return"
    name = signal.Signals(-code).name
    return f" by {name}{': the system may be out of memory' if -code == signal.SIGKILL else ''}"
