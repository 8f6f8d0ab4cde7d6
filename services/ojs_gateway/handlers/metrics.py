"""Metrics over HTTP: this process's for Prometheus, and the system's as a few numbers."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import hdrs

from ojs_core.base.errors import invalid
from ojs_core.read.messages import WorkersAsk
from ojs_core.telemetry import metrics
from ojs_core.wire.members import encode
from ojs_gateway.context import Context
from ojs_gateway.http.call import Call, Response

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
            raise invalid("format", f"format must be {' or '.join(_FORMATS)}, not {wanted[:40]!r}")
        if wanted == "prometheus":
            return await self.exposition(call)
        totals, workers = await asyncio.gather(self._queries.totals(), self._queries.workers(WorkersAsk(limit=1)))
        counts = totals.counts
        body: dict[str, Any] = {
            "uptime_seconds": self._context.uptime_s,
            "jobs_enqueued_total": counts.total,
            "jobs_completed_total": counts.completed,
            "jobs_failed_total": counts.discarded,
            "jobs_active": counts.active,
            "queues_active": totals.queues_busy,
            "workers_active": workers.summary.total - workers.summary.stale,
            "avg_latency_ms": totals.avg_wait_ms or 0.0,
            "throughput_per_second": totals.throughput_per_second,
        }
        return Response(200, encode(body))
