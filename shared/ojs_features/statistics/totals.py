"""Totals of the whole system, or of one queue, as clients read them (ojs-admin-api §10)."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from ojs_api.statistics import SystemStats
from ojs_engine.wire.members import written
from ojs_index.asking.messages import WorkerSummary
from ojs_index.asking.numbers import Numbers, Queue
from ojs_index.lists.lately import lately, windows
from ojs_index.lists.progress import progress


class QueueInBrief(Struct):
    """A queue as the command line's debugger lists it."""

    name: str
    depth: int
    avg_duration_ms: float
    error_rate: float


class AskedStats(Struct):
    """The answer to GET /admin/stats, with what the command line reads in place of two of its numbers."""

    stats: SystemStats
    paused: int
    workers: WorkerSummary
    queues: list[QueueInBrief] | None


def system_stats(numbers: Numbers, queues: int, workers: WorkerSummary, uptime_s: int, now: int) -> SystemStats:
    """Return the totals of the whole system, or of one queue."""
    return SystemStats(
        **asdict(lately(numbers, now)),
        queues=queues,
        workers=workers.total - workers.stale,
        workers_stale=workers.stale,
        jobs=written(numbers.counts),
        dead_letter=numbers.dead_letter,
        windows=windows(numbers),
        uptime_seconds=uptime_s,
        **progress(numbers),
    )


def queue_in_brief(queue: Queue) -> QueueInBrief:
    """Return a queue in brief; `error_rate` is the share of what ended within the last hour."""
    ended = queue.completed_last_hour + queue.failed_last_hour
    return QueueInBrief(
        name=queue.name,
        depth=queue.counts.available,
        avg_duration_ms=queue.avg_duration_ms or 0.0,
        error_rate=round(queue.failed_last_hour / ended, 4) if ended else 0.0,
    )
