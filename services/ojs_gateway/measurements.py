"""Metrics over HTTP: this process's for Prometheus, and the system's as a few numbers (requirements §17; clients.md 5)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import hdrs

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_nats import metrics
from ojs_nats.errors import invalid
from ojs_nats.queries import WorkersAsk
from ojs_nats.wire.output import encode

__all__ = ["Measurements"]

_TEXT: Final = ((hdrs.CONTENT_TYPE, metrics.CONTENT_TYPE),)
_FORMATS: Final = ("json", "prometheus")


class Measurements:
    """Handlers of /metrics."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queries = context.queries

    async def exposition(self, _call: Call) -> Answer:
        """GET /metrics."""
        return Answer(200, await metrics.exposition(), _TEXT)

    async def summary(self, call: Call) -> Answer:
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
        return Answer(200, encode(body))
