"""Closed-loop load: connections that each send their next request when the last one is answered."""

from __future__ import annotations

import asyncio
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import Final

import msgspec

from bench.client import Connection, Target
from bench.messages import error_name
from bench.processes import Meter, Spent

GRACE_S: Final = 5.0
"""How long after the end of a window its last answers are waited for."""

_PAUSE_AFTER_ERROR_S: Final = 0.01


class Phase:
    """One stretch of load and what its connections saw. Nothing is counted before `open_window`.

    `latencies` has every answered request in seconds, those included that were answered after the window; `jobs` is what
    was done inside the window, for the rate.
    """

    def __init__(self) -> None:
        self.since = math.inf
        self.until = math.inf
        self.last = 0.0
        self.exhausted = False
        self.jobs = 0
        self.empty = 0
        self.latencies = array("d")
        self.errors: Counter[str] = Counter()
        self.done = asyncio.Event()
        self._running = 0

    def open_window(self, seconds: float) -> None:
        self.since = self.last = perf_counter()
        self.until = self.since + seconds

    def count(self, now: float, elapsed: float, jobs: int = 1) -> None:
        """A request that took `elapsed` seconds was answered and settled `jobs` jobs."""
        if now >= self.since:
            self.latencies.append(elapsed)
            if now <= self.until:
                self.jobs += jobs
                self.last = now

    def finish(self) -> None:
        """All work is done, whatever the connections are still waiting for."""
        self.exhausted = True
        self.done.set()

    @property
    def seconds(self) -> float:
        """The length of the window; where the work ran out before its end, up to the last job."""
        return (self.last if self.exhausted else self.until) - self.since

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.seconds if self.jobs else 0.0

    def enter(self) -> None:
        self._running += 1

    def leave(self) -> None:
        self._running -= 1
        if not self._running:
            self.done.set()


class Looper(Connection):
    """A connection in a closed loop. Subclasses give the next request and take a successful answer."""

    def __init__(self, target: Target, phase: Phase) -> None:
        super().__init__(target)
        self.phase = phase
        self.sent = 0.0  # when the present request was written
        self._left = False

    def next_request(self) -> bytes | None:
        """The next request, or None when all work is done."""
        raise NotImplementedError

    def taken(self, body: bytes, now: float) -> None:
        """A 2xx answer. May raise msgspec.DecodeError."""
        raise NotImplementedError

    def gave_up(self) -> None:
        """The last request was refused or lost; it isn't repeated by itself."""

    def pause_s(self) -> float:
        """How long to wait before the next request."""
        return 0.0

    def start(self) -> None:
        """Begin; the phase isn't done before this connection has left it."""
        self.phase.enter()
        self._step()

    def _step(self) -> None:
        if self.busy or self._left or not self.connected:
            return
        now = perf_counter()
        request = self.next_request() if now < self.phase.until else None
        if request is None:
            self.phase.exhausted |= now < self.phase.until
            self._left = True
            self.phase.leave()
            return
        self.sent = now
        self.send(request)

    def answered(self, status: int, body: bytes) -> None:
        now = perf_counter()
        if not 200 <= status < 300:
            self._wrong(error_name(status, body))
            self.loop.call_later(_PAUSE_AFTER_ERROR_S, self._step)
            return
        try:
            self.taken(body, now)
        except msgspec.DecodeError as error:
            self._wrong(f"unreadable answer: {error}")
        pause = self.pause_s()
        if pause:
            self.loop.call_later(pause, self._step)
        else:
            self._step()

    def failed(self, reason: str) -> None:
        self._wrong(reason)

    def reconnected(self) -> None:
        self._step()

    def _wrong(self, what: str) -> None:
        self.phase.errors[what] += 1
        self.gave_up()


async def drive(
    phase: Phase, loopers: Sequence[Looper], *, seconds: float, warmup: float = 0.0, meter: Meter | None = None
) -> Spent | None:
    """Run the loopers until the work or the time is up, after `warmup` seconds that aren't counted.

    Returns what each process spent in the window (None without a meter). Requests still without an answer after a grace
    period are counted as errors. Raises OSError when the server can't be reached at the start.
    """
    try:
        for looper in loopers:
            await looper.open()
        for looper in loopers:
            looper.start()
        if warmup:
            await asyncio.sleep(warmup)
        before = meter.read() if meter else None
        phase.open_window(seconds)
        try:
            async with asyncio.timeout(seconds + GRACE_S):
                await phase.done.wait()
        except TimeoutError:
            if unanswered := sum(looper.busy for looper in loopers):
                phase.errors["no answer"] = unanswered
        return meter.spent(before) if meter and before else None
    finally:
        for looper in loopers:
            looper.close()
