"""Totals of the system, once and as a stream (ojs-admin-api §10; docs/statistics.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable

from ojs_engine.api.call import Call, Response
from ojs_engine.api.streams import KEEP_ALIVE, EventStream
from ojs_engine.base.fields import queue_name
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.pages import parse_page
from ojs_features.context import HandlerContext
from ojs_features.statistics.stream import Frame, StatisticsStream
from ojs_features.statistics.totals import AskedStats, queue_in_brief, system_stats
from ojs_index.asking.messages import QueuesAsk, WorkersAsk
from ojs_index.asking.numbers import Numbers, Queue


class TotalsHandlers:
    """Handlers of the system's totals, once and as a stream."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._store = context.store
        self._queries = context.queries
        self._pulse = StatisticsStream(context)

    async def stats(self, call: Call) -> Response:
        """GET /admin/stats?queue: of everything, or of one queue; `detail=true` lists the queues for the CLI."""
        queue = call.query("queue") or None
        if queue is not None:
            queue = queue_name(queue, "queue", self._context.limits)
        detailed = call.query("detail") == "true"
        limit = parse_page(call.queries).limit if detailed else 1
        records = await self._store.queues.all()
        numbers: Awaitable[Numbers] = self._queries.totals() if queue is None else self._queries.queue(queue)
        found, workers, page = await asyncio.gather(
            numbers,
            self._queries.workers(WorkersAsk(limit=1)),
            self._queries.queues(QueuesAsk(also=tuple(records), limit=limit)),
        )
        known, shown = page.total, records
        if isinstance(found, Queue):
            shown = {name: record for name, record in records.items() if name == found.name}
            known = int(bool(shown) or found.created_at is not None)
        stats = system_stats(found, known, workers.summary, self._context.uptime_s, self._store.clock.now())
        paused = sum(record.held for record in shown.values())
        briefs = [queue_in_brief(one) for one in page.queues] if detailed else None
        return Response(200, AskedStats(stats, paused, workers.summary, briefs))

    async def stream(self, call: Call) -> EventStream:
        """GET /admin/stats/stream: the event `stats` every two seconds, for the admin UI `metrics`, too."""
        self._pulse.join()
        return EventStream(self._frames(call.dialect.reader), self._pulse.leave)

    async def _frames(self, reader: Reader) -> AsyncGenerator[bytes]:
        seen: Frame | None = None
        while True:
            frame = await self._pulse.next(seen, self._context.keep_alive_s)
            if frame is not None:
                seen = frame
                yield frame.metrics + frame.stats if reader == "ui" else frame.stats
            else:
                yield KEEP_ALIVE
