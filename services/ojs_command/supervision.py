"""Keeps a service running: starts it, waits until it is ready, starts it again when it ends."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from asyncio.subprocess import Process
from collections.abc import Callable
from typing import ClassVar

import structlog

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.problems import StartupProblem
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)


class SupervisionTimings(Timings, frozen=True, kw_only=True):
    """When what has ended is started again."""

    first_pause_s: float = 0.2
    """The pause before the first start; each is twice as long as the one before. A failed start ends in as much."""
    longest_pause_s: float = 5.0
    """The longest pause."""
    healthy_s: float = 10.0
    """After a run of this length the pauses begin anew."""
    ill_s: float = 5.0
    """The time to stop of a process that is started again though it lives."""
    order: ClassVar[Order] = (("first_pause_s", "longest_pause_s", "pauses would grow shorter"),)


class Kept(ABC):
    """Something that is started again with growing pauses whenever it ends. A subclass says what it is."""

    def __init__(self, name: str, timings: SupervisionTimings = SupervisionTimings()) -> None:
        self._timings = timings
        self.name = name
        self._keeper: asyncio.Task[None] | None = None
        self._pause = self._timings.first_pause_s
        self._ready_at = 0.0
        """When it was last ready, or failed to be (loop time)."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Process id, None while it isn't running."""

    async def start(self) -> None:
        """Start it and return when it is ready.

        Raises `StartupProblem` if it ends before that; from then on it is kept.
        """
        await self._launch()
        self._keep_from_now()

    async def start_or_retry(self) -> StartupProblem | None:
        """Start it like `start`, but keep trying where that fails, too; returns why it is not ready."""
        try:
            await self._launch()
        except StartupProblem as problem:
            return problem
        finally:
            self._keep_from_now()
        return None

    async def stop(self, seconds: float) -> None:
        """End it, by force after `seconds`; also when it was never started or is being started."""
        await stop_loop(self._keeper)
        await self._end(seconds)

    @abstractmethod
    async def _launch(self) -> None:
        """Start it and return when it is ready. Raises `StartupProblem`; nothing of it runs any more then."""

    @abstractmethod
    async def _while_well(self) -> None:
        """Return when it has ended, or was ended because it can't work; at once if it doesn't run."""

    @abstractmethod
    async def _end(self, seconds: float) -> None:
        """End it, by force after `seconds`; it may not run."""

    def _keep_from_now(self) -> None:
        self._ready_at = asyncio.get_running_loop().time()
        self._keeper = start_loop(f"keep-{self.name}", self._keep)

    async def _keep(self) -> None:
        """Wait for its end, and start it again."""
        clock = asyncio.get_running_loop().time
        await self._while_well()
        if clock() - self._ready_at >= self._timings.healthy_s:
            self._pause = self._timings.first_pause_s
        pause = self._pause
        await asyncio.sleep(pause)
        self._pause = min(pause * 2, self._timings.longest_pause_s)
        try:
            await self._launch()
            log.info("started again", child=self.name, pid=self.pid, after_s=pause)
        except (StartupProblem, OSError) as problem:  # OSError: no processes, memory or files left for now
            log.error("could not be started again", child=self.name, reason=str(problem))
        self._ready_at = clock()


class Supervised(Kept):
    """One child process. A subclass says how it is started and when it is ready."""

    def __init__(self, name: str, on_change: Callable[[], None]) -> None:
        super().__init__(name)
        self._on_change = on_change
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if self._process is not None and running else None

    @abstractmethod
    async def _spawn(self) -> Process:
        """Start the process."""

    @abstractmethod
    async def _until_ready(self, process: Process) -> None:
        """Return when the process is ready. Raises `StartupProblem` if it ended, or can't be ready."""

    async def _unwell(self) -> str:
        """Returns, with the reason, when a process that runs has to be started again; never, unless a subclass says so."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    async def _ended(self) -> None:  # nothing to let go of, unless a subclass says so
        """Called when the process has ended."""

    async def _launch(self) -> None:
        self._process = await self._spawn()
        self._on_change()
        try:
            await self._until_ready(self._process)
        except StartupProblem:
            await self._end(self._timings.first_pause_s)
            raise
        self._on_change()

    async def _end(self, seconds: float) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(seconds):
                    await process.wait()
            except TimeoutError:
                log.warning("killed: it did not stop in time", child=self.name)
                process.kill()
                await process.wait()
        self._process = None
        await self._ended()
        self._on_change()

    async def _while_well(self) -> None:
        process = self._process
        if process is None:
            return
        death = asyncio.create_task(process.wait())
        illness = asyncio.create_task(self._unwell())
        try:
            await asyncio.wait((death, illness), return_when=asyncio.FIRST_COMPLETED)
            if death.done():
                log.error("died", child=self.name, status=_describe(death.result()))
                await self._end(0)
            else:
                log.warning("is started again", child=self.name, reason=illness.result())
                await self._end(self._timings.ill_s)
        finally:
            death.cancel()
            illness.cancel()


def _describe(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
