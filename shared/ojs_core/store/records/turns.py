"""Turns at a record that many requests of one process change at once: each would make the others try again."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class Turns:
    """Locks by record. One is there as long as somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, record: str) -> asyncio.Lock:
        """Return the lock of a record, to be entered at once."""
        found = self._locks.get(record)
        if found is None:
            found = self._locks[record] = asyncio.Lock()
        return found
