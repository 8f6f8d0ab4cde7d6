"""Statistics as clients read them: now and lately (ojs-admin-api §6, §10; docs/statistics.md)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct
from msgspec.structs import asdict

from ojs_api.statistics import Counts, Lately, Percentiles, Throughput, Window, Windows
from ojs_engine.domain.statistics import histogram
from ojs_engine.domain.statistics.point import Point
from ojs_engine.read.messages import WorkerSummary
from ojs_engine.read.numbers import Numbers, Queue
from ojs_engine.wire.members import Count, moment, written
from ojs_engine.wire.pages import PartialFlag, ProgressShare, progress

_NOTHING: Final = Point(at=0)


class AdminStats(Lately, frozen=True, kw_only=True, omit_defaults=True):
    """Of jobs that are still stored, of workers that are there, and of this gateway's time."""

    queues: Count
    workers: Count
    workers_stale: Count
    jobs: Counts
    dead_letter: Count
    windows: Windows
    uptime_seconds: Count
    partial: PartialFlag = UNSET
    index_progress: ProgressShare = UNSET


class QueueInBrief(Struct):
    """A queue as the command line's debugger lists it."""

    name: str
    depth: int
    avg_duration_ms: float
    error_rate: float


class AskedStats(Struct):
    """The answer to GET /admin/stats, with what the command line reads in place of two of its numbers."""

    stats: AdminStats
    paused: int
    workers: WorkerSummary
    queues: list[QueueInBrief] | None


def window(point: Point) -> Window:
    """Return what happened within the time of a point."""
    return Window(
        enqueued=point.pushed,
        started=point.started,
        processed=point.completed,
        failed=point.discarded,
        failed_attempts=point.failed,
        retried=point.retried,
        cancelled=point.cancelled,
        expired=point.expired,
        avg_latency_ms=point.avg_wait_ms or 0.0,
        wait_ms=None if point.wait is None else _percentiles(point.wait),
        run_ms=None if point.run is None else _percentiles(point.run),
    )


def _percentiles(found: histogram.Percentiles) -> Percentiles:
    return Percentiles(found.p50, found.p90, found.p95, found.p99, found.max)


def windows(numbers: Numbers) -> dict[str, Window]:
    """What happened within the last five minutes, hour and day."""
    return {name: window(point) for name, point in numbers.windows.items()}


def latest(numbers: Numbers) -> Point:
    """What happened within the last five minutes."""
    return numbers.windows.get("5m", _NOTHING)


def lately(numbers: Numbers, now: int) -> Lately:
    """What is told of one queue, and of all together."""
    last = latest(numbers)
    since = numbers.oldest_available_at
    return Lately(
        throughput=Throughput(
            processed_per_minute=round(numbers.throughput_per_second * 60, 3),
            failed_per_minute=round(numbers.failed_per_second * 60, 3),
            enqueued_per_minute=round(numbers.pushed_per_second * 60, 3),
            avg_latency_ms=numbers.avg_wait_ms or 0.0,
        ),
        latency_ms=_NO_TIMES if last.wait is None else _percentiles(last.wait),
        run_ms=_NO_TIMES if last.run is None else _percentiles(last.run),
        oldest_available_at=moment(since),
        oldest_available_age_ms=None if since is None else max(0, now - since),
    )


_NO_TIMES: Final = Percentiles(0.0, 0.0, 0.0, 0.0, 0.0)


def admin_stats(numbers: Numbers, queues: int, workers: WorkerSummary, uptime_s: int, now: int) -> AdminStats:
    """Totals of the whole system, or of one queue."""
    return AdminStats(
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
    """`error_rate` is the share of what ended within the last hour."""
    ended = queue.completed_last_hour + queue.failed_last_hour
    return QueueInBrief(
        name=queue.name,
        depth=queue.counts.available,
        avg_duration_ms=queue.avg_duration_ms or 0.0,
        error_rate=round(queue.failed_last_hour / ended, 4) if ended else 0.0,
    )
