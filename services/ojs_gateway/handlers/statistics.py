"""The stream of the system's totals (ojs-admin-api §10; docs/statistics.md)."""

from __future__ import annotations

from aiohttp import web

from ojs_engine.api.call import Call
from ojs_engine.wire.dialects.readers import Reader
from ojs_gateway.context import Context
from ojs_gateway.http.endpoint import StreamedResponse
from ojs_gateway.http.sse import KEEP_ALIVE, sse
from ojs_gateway.statistics_stream import Frame, StatisticsStream


class StatisticsStreamHandlers:
    """The handler of the stream."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pulse = StatisticsStream(context)

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
