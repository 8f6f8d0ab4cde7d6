"""Metrics over HTTP: this process's for Prometheus, and the system's as a few numbers."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import hdrs

from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import shown
from ojs_engine.telemetry import metrics
from ojs_gateway.answers.overview import system_metrics
from ojs_gateway.context import Context
from ojs_index.asking.messages import WorkersAsk

_TEXT: Final = ((hdrs.CONTENT_TYPE, metrics.CONTENT_TYPE),)
_FORMATS: Final = ("json", "prometheus")


class MetricHandlers:
    """Handlers of /metrics."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queries = context.queries

    async def exposition(self, _call: Call) -> Response:
        """GET /metrics."""
        return Response(200, await metrics.exposition(), _TEXT)

    async def summary(self, call: Call) -> Response:
        """GET /ojs/v1/metrics?format=json: the system by its records; `format=prometheus` is /metrics.

        The totals are those of jobs that are still stored: finished ones leave after their retention.
        """
        wanted = call.query("format") or "json"
        if wanted not in _FORMATS:
            raise invalid("format", f"format must be {' or '.join(_FORMATS)}, not {shown(wanted)}")
        if wanted == "prometheus":
            return await self.exposition(call)
        totals, workers = await asyncio.gather(self._queries.totals(), self._queries.workers(WorkersAsk(limit=1)))
        return Response(200, system_metrics(totals, workers.summary, self._context.uptime_s))
