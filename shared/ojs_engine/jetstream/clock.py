"""Server time, so that deadlines mean the same to every process and to the engine that keeps them (docs/adr/041)."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from ojs_engine.domain.transitions.deadlines import WorkerTimes
from ojs_engine.domain.transitions.result import Moment
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Connection
from ojs_link.timings import Timings

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""What nobody sets. On Linux it counts the time in which the machine slept, too, as nats-server's clock does."""


class ClockTimings(Timings, frozen=True, kw_only=True):
    """How the clock is corrected, and what is late by it."""

    slew_ms: int = 1_000
    """A correction backwards of up to this is waited out; a larger one is nats-server's own clock having been set."""
    late_ms: int = 1_000
    """From here on a record says how late its transition is."""


def _steady() -> float:
    return time.clock_gettime(_STEADY)


class ServerClock:
    """The steady clock of this machine set by nats-server's, and the source of fresh ops.

    The machine's own idea of the date is asked once, for the time until the first measurement: it may be set at any moment.
    """

    def __init__(
        self,
        steady: Callable[[], float] = _steady,
        wall: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
        *,
        workers: WorkerTimes = WorkerTimes(),
        timings: ClockTimings = ClockTimings(),
    ) -> None:
        self._timings = timings
        self.workers = workers
        self._steady = steady
        self._chance = chance
        self._offset = wall() - steady()
        self._last = 0
        self._prefix = secrets.token_hex(6)
        self._count = 0

    def now(self) -> int:
        """Server time in Unix milliseconds. It stands still while a correction backwards is made up for."""
        now = int((self._steady() + self._offset) * 1000)
        if now < self._last <= now + self._timings.slew_ms:
            return self._last
        self._last = now
        return now

    def moment(self, now: int | None = None) -> Moment:
        """A moment with an op of its own: unique per process start and per call. `now` may be a moment that has passed."""
        self._count += 1
        op = f"{self._prefix}{self._count:x}"
        if now is None:
            return Moment(now=self.now(), op=op, chance=self._chance(), workers=self.workers)
        late_ms = self.now() - now
        late_ms = late_ms if late_ms >= self._timings.late_ms else 0
        return Moment(now=now, op=op, chance=self._chance(), late_ms=late_ms, workers=self.workers)

    async def measure(self, nats: Connection, stream: str) -> float:
        """Compare with the server by one request; returns its round trip in seconds.

        The answer proves no more than that the server's clock read `ts` at some moment of the round trip. A known distance
        that agrees with that stays, and one that has drifted is moved no further than is proven, so that one slow answer
        doesn't move every deadline by half its delay. A clock that was set anew is guessed to have been read halfway.
        """
        before = self._steady()
        info = await call(nats, f"STREAM.INFO.{stream}")
        after = self._steady()
        if "ts" in info:
            there = datetime.fromisoformat(info["ts"]).timestamp()
            least, most = there - after, there - before
            near = min(max(self._offset, least), most)
            self._offset = near if abs(near - self._offset) <= most - least else (least + most) / 2
        return after - before
