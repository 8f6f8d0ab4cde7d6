"""Is a worker alive? Its own last word, and whether it could have been heard since."""

from __future__ import annotations

from typing import Final

from ojs_engine.base.lru import Lru
from ojs_engine.domain.transitions import Liveness
from ojs_engine.domain.worker import CompleteList
from ojs_engine.store.announce import announce_lost
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import STOPPED, covers
from ojs_link.timings import Timings

_TOLD_BYTES: Final = 1_000_000
_ENTRY_BYTES: Final = 200


class LivenessTimings(Timings, frozen=True, kw_only=True):
    """How long an answer about a worker counts."""

    fresh_ms: int = 500
    """Many jobs may ask for one worker at once."""


class WorkerLiveness:
    """Reads worker records and gateway beats; answers are shared for half a second, since a dead worker held many jobs."""

    def __init__(self, store: Store, timings: LivenessTimings = LivenessTimings()) -> None:
        self._timings = timings
        self._store = store
        self._known: dict[str, tuple[int, Liveness]] = {}
        self._told = Lru[int](_TOLD_BYTES)
        """Of workers whose death this process has told, when they were heard of last."""

    async def of(self, worker_id: str, now: int) -> Liveness:
        """What is known of a worker at `now` (server time, Unix ms)."""
        at = self._store.clock.now()
        self._known = {worker: known for worker, known in self._known.items() if at - known[0] < self._timings.fresh_ms}
        if worker_id not in self._known:
            self._known[worker_id] = (at, await self._read(worker_id, now))
        return self._known[worker_id][1]

    async def _read(self, worker_id: str, now: int) -> Liveness:
        sequence, record = await self._store.workers.latest(worker_id)
        if record is None:
            return Liveness(seen_at=None, covered=False)
        beats = await self._store.presence.of("gateway")
        dead_ms = self._store.clock.workers.dead_ms
        covered = covers(beats, now - dead_ms, now, self._store.presence.timings.max_gap_ms)
        dead = covered and record.state != STOPPED and record.seen_at + dead_ms <= now
        if dead and self._told.get(worker_id) != record.seen_at:
            self._told.put(worker_id, record.seen_at, len(worker_id) + _ENTRY_BYTES)
            await announce_lost(self._store, record)
        left = sequence if record.state == STOPPED and record.signed_off else None
        return Liveness(record.seen_at, covered, left, _bounded(record.complete, sequence), record.reach)


def _bounded(said: CompleteList | None, sequence: int) -> CompleteList | None:
    """What a worker says, but for marks that nobody can have given it yet."""
    return said if said is not None and max(said.since.sequence, said.until.sequence) < sequence else None
