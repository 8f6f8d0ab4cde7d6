"""A cache bounded by bytes, for what never changes once it is stored."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Lru"]

V = TypeVar("V")


class Lru(Generic[V]):
    """The least recently used goes first when the sizes of all exceed `capacity`."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keep a value of about `size` bytes, unless it would take a quarter of everything."""
        self.drop(key)
        if 4 * size > self._capacity:
            return
        self._entries[key] = (value, size)
        self._bytes += size
        while self._bytes > self._capacity:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._bytes -= dropped

    def drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0
