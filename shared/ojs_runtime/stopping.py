"""How a process is asked to stop: SIGTERM or SIGINT once, and again for those in a hurry."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine
from itertools import count
from threading import Thread
from typing import Any, ClassVar, Final, TypeVar

import structlog

from ojs_engine.base.loops import stop_tasks
from ojs_link.timings import Order, Timings

CRASHED: Final = 70
"""Exit code after a crash, or when work had to be cut off."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


class StopTimings(Timings, frozen=True, kw_only=True):
    """How long processes have to stop that have started each other, before they are killed."""

    alone_s: float = 5.0
    """A process that no other of ojs-nats has started."""
    supervised_s: float = 3.5
    """A process that another one has started; it counts this itself."""
    gateways_s: float = 3.6
    """A gateway of `gateway --processes`, before that kills it."""
    services_s: float = 3.7
    """A service of `dev`, which may be a `gateway --processes`, before `dev` kills it."""
    margin_s: float = 0.2
    """The rest, of a process behind the services in it, and of `dev` behind nats-server."""
    close_s: float = 0.8
    """The rest of a process behind its service: for closing connections, and leaving the interpreter."""
    by_force_s: float = 4.0
    """How long after its time a process may still be there, before it ends itself by force."""
    order: ClassVar[Order] = (
        ("margin_s", "supervised_s", "services in a process of their own would have no time"),
        ("close_s", "supervised_s", "a service would have no time"),
        ("supervised_s", "gateways_s", "a gateway would be killed while it stops"),
        ("gateways_s", "services_s", "gateways would lose the process that stops them"),
        ("services_s", "alone_s", "services would be killed with the process that stops them"),
        ("margin_s", "server_s", "nats-server would have no time"),
    )

    @property
    def server_s(self) -> float:
        """The time of the nats-server of `dev`, which is stopped behind the services."""
        return self.alone_s - self.services_s - self.margin_s


class Stopping:
    """Set once, by a signal or by `request`; everything in the process looks here."""

    def __init__(self, seconds: float, drain_seconds: float = 0.0, timings: StopTimings = StopTimings()) -> None:
        """`seconds` is what a stop may take. It begins `drain_seconds` after the signal that asks for it."""
        self.timings = timings
        self._seconds = seconds
        self._drain_seconds = drain_seconds
        self._announced = asyncio.Event()
        self._event = asyncio.Event()
        self._deadline = 0.0
        self._ends_process = False

    def on_signals(self) -> None:
        """Listen to SIGTERM and SIGINT. The first asks for a stop, or announces it where there is a time to drain; the next
        asks for it then, and one after that ends the process at once. The first never does, though a stop was requested before.

        From then on a stop ends the process in any case, by force if something in it doesn't let itself be ended.
        """
        self._ends_process = True
        loop, signals = asyncio.get_running_loop(), count(1)

        def received(number: int) -> None:
            if next(signals) > 1 and self._event.is_set():
                os._exit(128 + number)
            if self._drain_seconds > 0 and not self.draining:
                self._drain()
            else:
                self.request()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, received, number)

    def _drain(self) -> None:
        log.info("draining", seconds=self._drain_seconds)
        self._announced.set()
        asyncio.get_running_loop().call_later(self._drain_seconds, self.request)

    def request(self) -> None:
        """Ask the process to stop, now."""
        self._announced.set()
        if not self._event.is_set():
            self._deadline = asyncio.get_running_loop().time() + self._seconds
            self._event.set()
            if self._ends_process:
                seconds = self._seconds + self.timings.by_force_s
                force = Thread(target=_end_by_force, args=(seconds,), name="by-force", daemon=True)
                force.start()

    @property
    def draining(self) -> bool:
        """Whether the stop is announced: balancers are to send nobody any more, while everything still works."""
        return self._announced.is_set()

    async def announced(self) -> None:
        """Wait until the stop is announced, or asked for where there is no time to drain."""
        await self._announced.wait()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def remaining(self, margin: float) -> float:
        """Seconds until `margin` before the end; all of them while nobody has asked for a stop."""
        if not self._event.is_set():
            return self._seconds - margin
        return max(0.0, self._deadline - margin - asyncio.get_running_loop().time())

    async def wait(self) -> None:
        await self._event.wait()

    async def unless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of `work`, or None if a stop was requested first; `work` is then cancelled."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            return await task if task.done() else None
        finally:
            stop.cancel()
            if not task.done():
                await stop_tasks([task])


def _end_by_force(seconds: float) -> None:
    """End the process if it is still there by then: a thread may hold it, or a task that swallows its cancellation."""
    time.sleep(seconds)
    log.critical("ended by force: something in this process didn't stop in time", seconds=seconds)
    sys.stdout.flush()
    os._exit(CRASHED)
