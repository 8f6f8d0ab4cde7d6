"""Keeping statistics: minutes and hours that are over become records of the bucket (docs/adr/018).

The projector that relays events writes them, each once. Every projector would write the same, so who writes decides
nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import structlog

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.timings import of_kind
from ojs_engine.jetstream.api import put_if
from ojs_engine.store.store import Store
from ojs_features.statistics.activity import Activity
from ojs_features.statistics.records import HOUR_MS, KEPT_MS, MINUTE_MS, parts_of, span_reader
from ojs_features.statistics.time_buckets import buckets_of
from ojs_index.followed import Index
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_NAMES: Final = {MINUTE_MS: "minute", HOUR_MS: "hour"}
_REMEMBERED: Final = 5_000
_QUEUES_AT_ONCE: Final = 20

_encode: Final = msgspec.json.Encoder().encode


class StatisticsTimings(Timings, frozen=True, kw_only=True):
    """When a minute's numbers are kept."""

    look_s: float = 2.0
    """Between two looks whether a minute can be kept."""
    grace_ms: int = 30_000
    """From the end of a minute until it is kept: ten times as long as a commit is tried."""
    steady_ms: int = 5_000
    """How long records must have come without a break: what was on its way when NATS stood still has arrived by then."""
    break_ms: int = 2_000
    """A longer time between two turns counts as a break."""
    reset_ms: int = 5_000
    """How long nothing is kept behind a reset."""


class StatisticsWriter:
    """`leading` says whether this replica is the one to write."""

    def __init__(self, store: Store, index: Index, leading: Callable[[], bool], timings: StatisticsTimings) -> None:
        self._timings = timings
        self._store = store
        self._index = index
        self._buckets = buckets_of(index)
        self._leading = leading
        self._steady_since = 0
        self._caught_up_at = 0
        self._held_until = 0
        self._written: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = start_loop("statistics", self._run, every_s=self._timings.look_s)

    async def stop(self) -> None:
        await stop_loop(self._task)

    def caught_up(self, at: int) -> None:
        """Note that the index has everything that was stored by `at` (server time, Unix ms)."""
        if at - self._caught_up_at > self._timings.break_ms:
            self._steady_since = at
        self._caught_up_at = at

    async def clear(self) -> None:
        """A reset has begun (see `Store.on_reset`): what was counted so far is being wiped."""
        self._held_until = self._store.clock.now() + self._timings.reset_ms
        self._written.clear()

    async def _run(self) -> None:
        if not self._leading() or self._index.partial:
            return
        try:
            await self.look()
        except sqlite3.Error as error:
            log.warning("statistics wait", reason=str(error))

    async def look(self) -> None:
        """Write what is over and not kept yet, in order. Raises OjsError backend_unavailable."""
        at = self._caught_up_at
        if at - self._steady_since < self._timings.steady_ms or at < self._held_until:
            return
        over = at - self._timings.grace_ms
        minutes_since = at - KEPT_MS[MINUTE_MS]
        spans = self._buckets
        # Of a time for which no minutes are kept any more there are only hours; they come first, being older.
        for start in spans.open_hours(min(over, minutes_since)):
            spans.close(start + HOUR_MS)
            await self._keep_hour(start)
        for start in spans.open_minutes(over):
            if start + MINUTE_MS > minutes_since:
                spans.close(start + MINUTE_MS)
                await self._keep(start, MINUTE_MS, spans.minute(start))
        for start in spans.open_hours(over):
            if spans.settled(start, start + HOUR_MS):
                await self._keep_hour(start)

    async def _keep_hour(self, start: int) -> None:
        """Add up its minutes, which change no more, and let others do something in between."""
        spans = self._buckets
        queues: dict[str, Activity] = {}
        for number, queue in enumerate(spans.queues_within(start, start + HOUR_MS), 1):
            queues[queue] = spans.within(queue, start, start + HOUR_MS)
            if number % _QUEUES_AT_ONCE == 0:
                await asyncio.sleep(0)
        await self._keep(start, HOUR_MS, queues)

    async def _keep(self, start: int, length: int, queues: Mapping[str, Activity]) -> None:
        for span in parts_of(start, length, queues, by=self._store.instance):
            name = f"{_NAMES[length]}.{start // 1_000}.{span.part}"
            if name in self._written:  # it is on its way back to the index
                continue
            leaves_at = start + length + KEPT_MS[length]
            ttl_s = max(1, (leaves_at - self._store.clock.now()) // 1_000)
            subject = self._store.config.record(span_reader.kind, name)
            await put_if(self._store.nats, subject, _encode(span), 0, "statistics", ttl_s=ttl_s)  # or it is there already
            if len(self._written) >= _REMEMBERED:
                self._written.clear()
            self._written.add(name)


def statistics_keeper(
    store: Store, index: Index, leading: Callable[[], bool], timings: tuple[Timings, ...]
) -> StatisticsWriter:
    """Return a writer that is not started yet."""
    return StatisticsWriter(store, index, leading, of_kind(StatisticsTimings, timings))
