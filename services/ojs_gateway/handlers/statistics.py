"""The stream of the system's totals (ojs-admin-api §10; docs/statistics.md)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ojs_engine.api.call import Call
from ojs_engine.api.streams import KEEP_ALIVE, EventStream
from ojs_engine.wire.dialects.readers import Reader
from ojs_gateway.context import Context
from ojs_gateway.statistics_stream import Frame, StatisticsStream


class StatisticsStreamHandlers:
    """The handler of the stream."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pulse = StatisticsStream(context)

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
