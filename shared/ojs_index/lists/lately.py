"""What happened lately, as clients read it of a queue, and of all together (ojs-admin-api §6; docs/statistics.md)."""

from __future__ import annotations

from typing import Final

from ojs_api.statistics import Lately, Percentiles, Throughput, Window
from ojs_engine.wire.members import moment
from ojs_index.asking import numbers as read
from ojs_index.asking.numbers import Numbers, Point

_NOTHING: Final = Point(at=0)


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


def _percentiles(found: read.Percentiles) -> Percentiles:
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
