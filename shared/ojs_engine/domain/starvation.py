"""Whose turn is overdue: of several that wait, those that were passed over for too long (docs/adr/029); pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Generic, TypeVar

K = TypeVar("K")

USUAL_INTERVAL_MS: Final = 30_000
"""How long a wait may be where nothing else is set (ojs-fair-scheduling §8.1)."""


class StarvationClock(Generic[K]):
    """Since when each of several has waited, as one process has seen it (Unix ms)."""

    def __init__(self) -> None:
        self._since: dict[K, int] = {}

    def overdue(self, waiting: Iterable[K], interval_ms: int, now: int) -> list[K]:
        """Those of `waiting` that have waited for the interval, the longest wait first, equals in their order.

        The wait of one that was not known begins now.
        """
        waits = [(self._since.setdefault(one, now), one) for one in waiting]
        return [one for since, one in sorted(waits, key=lambda wait: wait[0]) if now - since >= interval_ms]

    def had(self, served: Iterable[K], now: int) -> None:
        """These had their turn, whether they had something to give or not."""
        for one in served:
            self._since[one] = now

    def keep(self, waiting: Collection[K]) -> None:
        """Whatever else was known waits no longer."""
        self._since = {one: since for one, since in self._since.items() if one in waiting}


def is_starved(oldest_at: int | None, last_at: int | None, interval_ms: int, now: int) -> bool:
    """Whether jobs of a queue wait, and none was handed out for the interval (ojs-fair-scheduling §11.1)."""
    return oldest_at is not None and now - max(oldest_at, last_at or 0) > interval_ms
