"""Turns at a record that many requests of one process change at once: each would make the others try again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from ojs_engine.store.records.backoff import contended


class Turns:
    """Locks by record. One is there as long as somebody holds it or waits for it."""

    def __init__(self, longest_wait_s: float) -> None:
        self._longest_wait_s = longest_wait_s
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, record: str) -> AsyncIterator[None]:
        """Hold the turn at a record. Raises OjsError backend_unavailable if too many others come first."""
        lock = self._locks.get(record)
        if lock is None:
            lock = self._locks[record] = asyncio.Lock()
        try:
            async with asyncio.timeout(self._longest_wait_s):
                await lock.acquire()
        except TimeoutError:
            raise contended(f"record {record}") from None
        try:
            yield
        finally:
            lock.release()
