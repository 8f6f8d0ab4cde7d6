"""Statistics: totals, series for charts and the stream of both (ojs-admin-api §10; docs/statistics.md)."""

from __future__ import annotations

from aiohttp import web
from msgspec.structs import replace

from ojs_core.api.call import Call, Response
from ojs_core.base.fields import queue_name
from ojs_core.wire.dialects.readers import Reader
from ojs_core.wire.statistics.answers import history_answer
from ojs_core.wire.statistics.requests import parse_history, period_of
from ojs_gateway.context import Context
from ojs_gateway.http.endpoint import StreamedResponse
from ojs_gateway.http.sse import KEEP_ALIVE, sse
from ojs_gateway.statistics_stream import Frame, StatisticsStream


class StatisticsHandlers:
    """Handlers under /admin/stats, and those of single queues over time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits
        self._pulse = StatisticsStream(context)

    async def history(self, call: Call) -> Response:
        """GET /admin/stats/history?period&since&until&queue."""
        return await self._history(call, None)

    async def queue_history(self, call: Call) -> Response:
        """GET /queues/{name}/stats/history?period&since&until."""
        return await self._history(call, queue_name(call.parameters[0], "queue", self._limits))

    async def _history(self, call: Call, queue: str | None) -> Response:
        ask = parse_history(call.queries, self._store.clock.now(), self._limits, queue)
        ask = replace(ask, queue=call.require_one_queue(ask.queue))
        history = await self._queries.history(ask)
        return Response(200, history_answer(history, ask, period_of(call.queries)))

    async def stream(self, call: Call) -> StreamedResponse:
        """GET /admin/stats/stream: the event `stats` every two seconds, for the admin UI `metrics`, too."""
        self._pulse.join()
        return sse(
            lambda response: self._write(response, call.dialect.reader), self._pulse.leave, lambda: self._context.stopping
        )

    async def _write(self, response: web.StreamResponse, reader: Reader) -> None:
        seen: Frame | None = None
        while not self._context.stopping:
            frame = await self._context.unless_stopping(self._pulse.next(seen, self._context.timings.keep_alive_s))
            if frame is not None:
                seen = frame
                await response.write(frame.metrics + frame.stats if reader == "ui" else frame.stats)
            else:
                await response.write(KEEP_ALIVE)
