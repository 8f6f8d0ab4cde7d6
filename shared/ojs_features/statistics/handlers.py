"""Statistics over time: series for charts (ojs-admin-api §10; docs/statistics.md)."""

from __future__ import annotations

from msgspec.structs import replace

from ojs_engine.api.call import Call, Response
from ojs_engine.base.fields import queue_name
from ojs_features.context import HandlerContext
from ojs_features.statistics.answers import history_answer
from ojs_features.statistics.requests import parse_history, period_of
from ojs_features.statistics.series import QUESTION, History


class StatisticsHandlers:
    """Handlers of series, of one queue and of all."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits

    async def history(self, call: Call) -> Response:
        """GET /admin/stats/history?period&since&until&queue."""
        return await self._history(call, None)

    async def queue_history(self, call: Call) -> Response:
        """GET /queues/{name}/stats/history?period&since&until."""
        return await self._history(call, queue_name(call.parameters[0], "queue", self._limits))

    async def _history(self, call: Call, queue: str | None) -> Response:
        ask = parse_history(call.queries, self._store.clock.now(), self._limits, queue)
        ask = replace(ask, queue=call.require_one_queue(ask.queue))
        found = await self._queries.ask(QUESTION, ask, History)
        return Response(200, history_answer(found, ask, period_of(call.queries)))
