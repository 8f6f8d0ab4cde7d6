"""The system's totals as operators read them (ojs-admin-api §10)."""

from __future__ import annotations

from typing import Any

import msgspec

from ojs_core.read.messages import WorkerSummary
from ojs_core.read.numbers import Numbers, Queue
from ojs_core.wire.statistics import lately_view, windows_view


def _summary(summary: WorkerSummary) -> dict[str, int]:
    numbers: dict[str, int] = msgspec.structs.asdict(summary)
    return {**numbers, "active": summary.total - summary.stale}


def stats_view(numbers: Numbers, queues: int, workers: WorkerSummary, uptime_s: int, now: int) -> dict[str, Any]:
    """GET /admin/stats: of jobs that are still stored, of workers that are there, and of this gateway's time."""
    return {
        "queues": queues,
        "workers": workers.total - workers.stale,
        "workers_stale": workers.stale,
        "jobs": msgspec.structs.asdict(numbers.counts),
        "dead_letter": numbers.dead_letter,
        **lately_view(numbers, now),
        "windows": windows_view(numbers),
        "uptime_seconds": uptime_s,
    }


def plain_stats(view: dict[str, Any], workers: WorkerSummary, paused: int) -> dict[str, Any]:
    """The same for the CLI, which reads the numbers of queues and workers as objects."""
    total = view["queues"]
    return view | {
        "queues": {"total": total, "active": total - paused, "paused": paused},
        "workers": _summary(workers),
    }


def queue_detail(queue: Queue) -> dict[str, Any]:
    """A queue as the CLI's debugger lists it."""
    ended = queue.completed_last_hour + queue.failed_last_hour
    return {
        "name": queue.name,
        "depth": queue.counts.available,
        "avg_duration_ms": queue.avg_duration_ms or 0.0,
        "error_rate": round(queue.failed_last_hour / ended, 4) if ended else 0.0,
    }
