"""The bound on requests of the JetStream API that one connection has under way.

nats-server has one queue of them for all its clients and drops requests where it is full: a process that asks for a
thousand things at once would keep all others waiting (docs/adr/029).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ojs_core.base.errors import unavailable

_AT_ONCE: Final = 64
_WAIT_S: Final = 10.0
"""How long a request waits for its turn: longer than many others take while NATS is well."""


class Turns:
    """Lets `at_once` requests be under way; the others follow in the order in which they came."""

    def __init__(self, at_once: int = _AT_ONCE, wait_s: float = _WAIT_S) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._wait_s = wait_s

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
