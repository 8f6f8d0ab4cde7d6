"""Records that are gone from the bucket without a trace: a part of its stream's file was lost.

A record that leaves in any other way leaves a marker or a tombstone, of which the index hears. So the bucket never
has fewer records of a kind, with what stands for those that left, than the index has rows.
"""

from __future__ import annotations

import asyncio

import structlog

from ojs_engine.jetstream.contents import count, stream_info
from ojs_engine.jetstream.subjects import REST
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_index.sqlite.model import Model
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)


class CompletenessTimings(Timings, frozen=True, kw_only=True):
    """How often the index is compared with the bucket."""

    every_s: float = 300.0
    """Between two looks without a reason: counting takes nats-server some 0.1 s for each million of jobs."""
    timeout_s: float = 10.0
    """How long a count may take."""
    leaving_ms: int = 1_000
    """Rows whose time is over within this time aren't counted: their records may be gone."""


class Completeness:
    """One index, compared with the bucket: at the start, when NATS was away, and now and then."""

    def __init__(self, store: Store, model: Model, timings: CompletenessTimings) -> None:
        self._timings = timings
        self._store = store
        self._model = model
        self._connections = 0
        self._next = 0.0
        self._before = 0
        """What was missing at the last look."""
        self._known = 0
        """What is missing though everything was read anew: as much as is lost of what the index doesn't count."""
        self._read_anew = False
        self.gone = 0
        """How many records were gone, since the start."""

    async def look(self) -> bool:
        """Compare, if it is time for that; whether records are gone, so that everything is to be read anew.

        Twice in a row, since a look may meet a reset, or a replica that is behind. Raises OjsError backend_unavailable.
        """
        now = asyncio.get_running_loop().time()
        if now < self._next and self._store.nats.connections == self._connections:
            return False
        self._connections = self._store.nats.connections
        missing = await self._missing()
        if self._read_anew:
            self._read_anew, self._known, self._before = False, missing, missing
        gone = min(missing, self._before) - self._known
        self._before = missing
        if gone > 0:
            self._read_anew, self._next = True, 0.0
            self.gone += gone
            metrics.SAFETY_NET.labels("record").inc(gone)
            log.error("records are gone from the bucket: everything is read anew", records=gone)
            return True
        self._next = now + self._timings.every_s if missing <= self._known else 0.0
        return False

    async def _missing(self) -> int:
        """How many records fewer the bucket has, counted after the rows: what is stored meanwhile makes it fewer."""
        store, rows = self._store, self._model.rows_that_stay(self._store.clock.now() + self._timings.leaving_ms)
        stream = store.config.records_stream
        patterns = [store.config.record(kind, REST) for kind in self._model.counted]
        counted = await asyncio.gather(
            *(count(store.bulk, stream, pattern, "the records", timeout_s=self._timings.timeout_s) for pattern in patterns)
        )
        lost = (await stream_info(store.nats, stream)).state.lost
        return max(0, rows - sum(counted) + lost)
