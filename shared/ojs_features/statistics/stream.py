"""The statistics that are streamed: asked for every two seconds while somebody watches, once for all who do."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ojs_engine.api.streams import frame
from ojs_engine.base.loops import start_loop
from ojs_engine.wire.members import encode
from ojs_features.context import HandlerContext
from ojs_features.statistics.dialects import metrics
from ojs_features.statistics.totals import system_stats
from ojs_index.asking.messages import MAX_PAGE, QueuesAsk, WorkersAsk
from ojs_link.timings import Timings


class StreamTimings(Timings, frozen=True, kw_only=True):
    """How often those who watch get statistics."""

    pulse_s: float = 2.0
    """Between two frames of statistics for who watches."""


class Frame(NamedTuple):
    """The events of one moment, as they are sent; `metrics` is for the admin UI."""

    stats: bytes
    metrics: bytes


class StatisticsStream:
    """Who watches gets the latest frame; who is slow misses some, and nothing is kept for anybody."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._timings = context.store.bucket.timings(StreamTimings)
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None
        self._latest: Frame | None = None
        self._beat = asyncio.Condition()

    def join(self) -> None:
        """One more watches."""
        self._watchers += 1
        if self._task is None:
            self._task = start_loop("pulse", self._run, tell=False)

    def leave(self) -> None:
        """One watches no longer."""
        self._watchers -= 1
        if not self._watchers and self._task is not None:
            self._task.cancel()
            self._task = self._latest = None

    async def next(self, seen: Frame | None, timeout_s: float) -> Frame | None:
        """A frame other than the one that was seen, or None when there is none in time."""
        try:
            async with asyncio.timeout(timeout_s), self._beat:
                await self._beat.wait_for(lambda: self._latest is not None and self._latest is not seen)
                return self._latest
        except TimeoutError:
            return None

    async def _run(self) -> None:
        self._latest = await self._look()
        async with self._beat:
            self._beat.notify_all()
        await asyncio.sleep(self._timings.pulse_s)

    async def _look(self) -> Frame:
        queries = self._context.queries
        also = tuple(await self._context.store.queues.all())
        totals, queues, workers = await asyncio.gather(
            queries.totals(), queries.queues(QueuesAsk(also=also, limit=MAX_PAGE)), queries.workers(WorkersAsk(limit=MAX_PAGE))
        )
        now = self._context.store.clock.now()
        stats = system_stats(totals, queues.total, workers.summary, self._context.uptime_s, now)
        seen_by_ui = metrics(totals, queues, workers)
        return Frame(frame("stats", encode(stats)), frame("metrics", encode(seen_by_ui)))
