"""Waiting for the index to reach a sequence."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class Watermark:
    """How far the index has come, and who waits for it to come further."""

    def __init__(self) -> None:
        self.sequence = 0
        self.wanted = asyncio.Event()
        """Set while somebody waits, so that the reader does not pause."""
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = itertools.count()

    def advance(self, sequence: int) -> None:
        self.sequence = max(self.sequence, sequence)
        while self._waiting and self._waiting[0][0] <= self.sequence:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)
        if not self._waiting:
            self.wanted.clear()

    def fall_back(self, sequence: int) -> None:
        """What was reached beyond that is lost and will be reached again."""
        self.sequence = min(self.sequence, sequence)

    async def until(self, sequence: int, timeout_s: float) -> bool:
        """Wait for a sequence; False if the time was up first."""
        if sequence <= self.sequence:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (sequence, next(self._tickets), future))
        self.wanted.set()
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            return False
        return True
