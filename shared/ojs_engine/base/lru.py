"""A cache bounded by bytes, for what never changes once it is stored."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Lru(Generic[V]):
    """The least recently used goes first when the sizes of all exceed `capacity`, and, where `idle_s` is given, when nobody has
    used it for so many seconds: a cache of what passes through would else grow to its capacity, however little is used.
    """

    def __init__(self, capacity: int, *, idle_s: float | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._idle_s = idle_s
        self._now = now
        self._entries: OrderedDict[Hashable, tuple[V, int, float]] = OrderedDict()
        """Value, size, and when it was last used where that counts."""
        self._bytes = 0

    def get(self, key: Hashable) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, size, _ = entry
        if self._idle_s is not None:
            self._entries[key] = value, size, self._now()
        self._entries.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keep a value of about `size` bytes, unless it would take a quarter of everything."""
        self.drop(key)
        if 4 * size > self._capacity:
            return
        now = 0.0 if self._idle_s is None else self._now()
        self._entries[key] = value, size, now
        self._bytes += size
        while self._bytes > self._capacity or self._has_idle(now):
            _, (_, dropped, _) = self._entries.popitem(last=False)
            self._bytes -= dropped

    def drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0

    def _has_idle(self, now: float) -> bool:
        return self._idle_s is not None and next(iter(self._entries.values()))[2] < now - self._idle_s
