"""The bound on requests of the JetStream API that one connection has under way.

nats-server has one queue of them for all its clients and drops requests where it is full: a process that asks for a
thousand things at once would keep all others waiting (docs/adr/029).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ojs_engine.base.errors import unavailable
from ojs_link.timings import Timings


class TurnTimings(Timings, frozen=True, kw_only=True):
    """How many requests are under way at once, and how long others wait."""

    at_once: int = 64
    """Requests under way."""
    wait_s: float = 10.0
    """How long a request waits for its turn: longer than many others take while NATS is well."""


class Turns:
    """Lets some requests be under way; the others follow in the order in which they came."""

    def __init__(self, timings: TurnTimings) -> None:
        self._free = asyncio.Semaphore(timings.at_once)
        self._wait_s = timings.wait_s

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold a turn while a request is under way. Raises OjsError backend_unavailable if none comes."""
        if self._free.locked():
            await self._wait()
        else:
            await self._free.acquire()  # at once
        try:
            yield
        finally:
            self._free.release()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise unavailable("too many requests to JetStream wait in this process") from None
