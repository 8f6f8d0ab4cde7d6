"""Is a worker alive? Its own last word, and whether it could have been heard since."""

from __future__ import annotations

from typing import Final

from ojs_core.domain.transitions import LIVENESS_MS, Liveness
from ojs_core.store.store import Store
from ojs_core.store.workers.presence import covers

_FRESH_MS: Final = 500


class WorkerLiveness:
    """Reads worker records and gateway beats; answers are shared for half a second, since a dead worker held many jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, Liveness]] = {}

    async def of(self, worker_id: str, now: int) -> Liveness:
        """What is known of a worker at `now` (server time, Unix ms)."""
        at = self._store.clock.now()
        self._known = {worker: known for worker, known in self._known.items() if at - known[0] < _FRESH_MS}
        if worker_id not in self._known:
            self._known[worker_id] = (at, await self._read(worker_id, now))
        return self._known[worker_id][1]

    async def _read(self, worker_id: str, now: int) -> Liveness:
        record = await self._store.workers.get(worker_id)
        if record is None:
            return Liveness(seen_at=None, covered=False)
        beats = await self._store.presence.of("gateway")
        return Liveness(seen_at=record.seen_at, covered=covers(beats, now - LIVENESS_MS, now))
