"""Locks that their jobs have left behind."""

from __future__ import annotations

from ojs_engine.base.timings import of_kind
from ojs_engine.store.store import Store
from ojs_features.unique.index import settle, suspects
from ojs_features.unique.timings import LeftLockTimings
from ojs_features.unique.uniqueness import Uniqueness
from ojs_index.followed import Index
from ojs_link.timings import Timings


class LeftLocks:
    """The search for locks that nobody let go."""

    def __init__(self, store: Store, index: Index, timings: tuple[Timings, ...]) -> None:
        self._locks = store.of(Uniqueness).locks
        self._clock = store.clock
        self._index = index
        self._timings = of_kind(LeftLockTimings, timings)

    async def look(self) -> None:
        """Let the next few locks go that nothing holds. Raises OjsError backend_unavailable."""
        now = self._clock.now()
        again_at = now + self._timings.check_ms
        for suspect in suspects(self._index.db, now, self._timings.at_once):
            settle(self._index.db, suspect, await self._locks.tidy(suspect.key), again_at)
