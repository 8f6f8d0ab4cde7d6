"""The same act over and over, and floods of different ones, as few entries."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from ojs_core.audit.entry import SEVERAL, Entry

WINDOW_S: Final = 60.0
"""How long acts are counted as one entry after the first."""
MOST: Final = 30
"""How many different acts get entries of their own in a window."""


class _Counted:
    __slots__ = ("count", "ends", "first_at", "last")

    def __init__(self, first: Entry, ends: float, count: int) -> None:
        self.last = first
        self.first_at = first.timestamp
        self.ends = ends
        self.count = count


def _of_several(entry: Entry) -> Entry:
    return replace(entry, principal=SEVERAL, source_ip=SEVERAL, detail=replace(entry.detail, principal_id=UNSET, target={}))


class Repeats:
    """At most two entries a window for each act, and for all beyond `most` acts one together. Times are in seconds."""

    def __init__(self, window_s: float = WINDOW_S, most: int = MOST) -> None:
        self._window_s = window_s
        self._most = most
        self._open: dict[Hashable, _Counted] = {}

    def is_first(self, key: Hashable, entry: Entry, now: float) -> bool:
        """Whether the entry is to be written now; else it is counted, and `over` tells of it."""
        counted = self._open.get(key)
        if counted is None and len(self._open) < self._most:
            self._open[key] = _Counted(entry, now + self._window_s, 0)
            return True
        if counted is None:
            key = None
            entry = _of_several(entry)
            counted = self._open.get(key)
        if counted is None:
            self._open[key] = _Counted(entry, now + self._window_s, 1)
        else:
            counted.last = entry
            counted.count += 1
        return False

    @property
    def next_end(self) -> float | None:
        """When the next window is over."""
        return min((counted.ends for counted in self._open.values()), default=None)

    def over(self, now: float) -> list[Entry]:
        """One entry for each act that was repeated in a window that is over."""
        ended = [key for key, counted in self._open.items() if counted.ends <= now]
        found = [self._open.pop(key) for key in ended]
        return [
            replace(one.last, detail=replace(one.last.detail, count=one.count, first_at=one.first_at))
            for one in found
            if one.count
        ]
