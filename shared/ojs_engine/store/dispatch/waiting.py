"""How a fetch waits for jobs: it scans its queues, and again when a token arrives, until its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ojs_engine.domain.job import Job
from ojs_engine.store.dispatch.order import QueueScans
from ojs_engine.store.dispatch.request import FetchRequest, GivenUp
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.dispatch.token_parking import TokenParking
from ojs_engine.store.dispatch.wakeups import Waiter, Wakeups


class FetchWait:
    """The wait around the scans of a fetch."""

    def __init__(self, scans: QueueScans, wakeups: Wakeups, parking: TokenParking | None, timings: DispatchTimings) -> None:
        self._scans = scans
        self._wakeups = wakeups
        self._parking = parking
        self._timings = timings

    async def at_once(self, request: FetchRequest) -> list[Job]:
        """Return the jobs that there are. While tokens of blocked jobs hide what is behind them, wait for that."""
        await self._wakeups.listen(request.queues)
        jobs = await self._scans.shielded(request, last=True)
        parking = self._parking
        if not jobs and parking is not None and await parking.settled(request.queues, self._timings.cleared_s):
            jobs = await self._scans.shielded(request, last=True)
        return jobs

    async def until(self, deadline: float, request: FetchRequest, given_up: GivenUp) -> list[Job]:
        """Return jobs as soon as there are any; none at the deadline (loop time), or when the client has left."""
        waiter = await self._wakeups.join(request.queues, None if request.handled is None else request.takes)
        try:
            return await self._scan_until(deadline, request, given_up, waiter)
        finally:
            await self._wakeups.leave(waiter)

    async def _scan_until(self, deadline: float, request: FetchRequest, given_up: GivenUp, waiter: Waiter) -> list[Job]:
        loop = asyncio.get_running_loop()
        pauses: Iterator[float] = iter(())
        while True:
            if waiter.woken:
                pauses = iter(self._timings.further_looks_s)
            waiter.clear()
            jobs = await self._scans.shielded(request)
            left = deadline - loop.time()
            if jobs or left <= 0 or self._wakeups.closed:
                return jobs
            await waiter.wait(min(left, next(pauses, self._timings.fallback_look_s)))
            while not waiter.woken and self._wakeups.empty(request.queues) and (left := deadline - loop.time()) > 0:
                if await given_up():
                    return []
                await waiter.wait(min(left, self._timings.fallback_look_s))
            if await given_up():
                return []
