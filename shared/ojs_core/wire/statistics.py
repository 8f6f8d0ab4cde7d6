"""Statistics as clients read them: now, lately and over time (ojs-admin-api §6, §10; docs/statistics.md).

Where names differ, both are sent: `processed` and `completed` are completed jobs, `failed` discarded ones, `latency` is the
time from available to started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ojs_core.base.errors import invalid
from ojs_core.base.fields import queue_name, shown, timestamp
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.base.times import format_ms
from ojs_core.domain.statistics.histogram import Percentiles
from ojs_core.domain.statistics.point import Point
from ojs_core.domain.statistics.record import HOUR_MS, KEPT_MS, MINUTE_MS
from ojs_core.read.messages import WorkerPage
from ojs_core.read.numbers import History, HistoryAsk, Numbers, QueuePage, Totals

_DAY_MS: Final = 24 * HOUR_MS
_PERIODS: Final = {"1m": MINUTE_MS, "5m": 5 * MINUTE_MS, "1h": HOUR_MS, "1d": _DAY_MS}
_DEFAULT_PERIOD: Final = "5m"
_DEFAULT_SPANS: Final = {"1m": HOUR_MS, "5m": HOUR_MS, "1h": _DAY_MS, "1d": 31 * _DAY_MS}
_UNITS: Final = {"m": MINUTE_MS, "h": HOUR_MS, "d": _DAY_MS}
_AGO: Final = re.compile(r"([0-9]{1,6})([mhd])", re.ASCII)
_LATEST: Final = "5m"
_NOTHING: Final = Point(at=0)


# Over time


def period_of(query: Mapping[str, str]) -> str:
    """The length of a point: `1m`, `5m`, `1h` or `1d`."""
    period = query.get("period") or _DEFAULT_PERIOD
    if period not in _PERIODS:
        raise invalid("period", f"period must be one of {', '.join(_PERIODS)}, not {shown(period)}")
    return period


def parse_history(query: Mapping[str, str], now: int, limits: PayloadLimits, queue: str | None = None) -> HistoryAsk:
    """GET /admin/stats/history?period&since&until&queue; `from` and `to` are the same as `since` and `until`.

    Times are RFC 3339 timestamps, or `30m`, `24h`, `7d` for so long ago. What is no longer kept is left out.
    """
    period = period_of(query)
    step = _PERIODS[period]
    until = _time(query, ("until", "to"), now)
    until = min(now if until is None else until, now) + 1
    since = _time(query, ("since", "from"), now)
    if since is None:
        since = until - _DEFAULT_SPANS[period]
    elif since >= until:
        raise invalid("since", "since must be before until, and not in the future")
    kept = KEPT_MS[HOUR_MS if step >= HOUR_MS else MINUTE_MS]
    if queue is None and query.get("queue"):
        queue = queue_name(query["queue"], "queue", limits)
    return HistoryAsk(queue=queue, step_ms=step, since=max(since, now - kept), until=max(until, now - kept))


def _time(query: Mapping[str, str], names: tuple[str, ...], now: int) -> int | None:
    for name in names:
        text = query.get(name)
        if text:
            ago = _AGO.fullmatch(text)
            return now - int(ago[1]) * _UNITS[ago[2]] if ago else timestamp(text, name)
    return None


def history_view(history: History, ask: HistoryAsk, period: str, *, plain: bool) -> dict[str, Any]:
    """The points in order of time; `data_points` is what the official command line calls them."""
    points = [{"timestamp": format_ms(point.at), **_point_view(point)} for point in history.points]
    view: dict[str, Any] = {"period": period, "data": points}
    if ask.queue is not None:
        view["queue"] = ask.queue
    if plain:
        view["data_points"] = points
    return view


def _point_view(point: Point) -> dict[str, Any]:
    wait = point.wait
    view: dict[str, Any] = {
        "enqueued": point.pushed,
        "started": point.started,
        "processed": point.completed,
        "completed": point.completed,
        "failed": point.discarded,
        "failed_attempts": point.failed,
        "retried": point.retried,
        "cancelled": point.cancelled,
        "expired": point.expired,
        "avg_latency_ms": point.avg_wait_ms or 0.0,
        "latency_p50_ms": wait.p50 if wait is not None else 0.0,
        "latency_p99_ms": wait.p99 if wait is not None else 0.0,
    }
    for name, found in (("wait_ms", wait), ("run_ms", point.run)):
        if found is not None:
            view[name] = _percentiles_view(found)
    return view


def _percentiles_view(found: Percentiles) -> dict[str, float]:
    return {"p50": found.p50, "p90": found.p90, "p95": found.p95, "p99": found.p99, "max": found.max}


# Now and lately


def windows_view(numbers: Numbers) -> dict[str, Any]:
    """What happened within the last five minutes, hour and day."""
    return {name: _point_view(point) for name, point in numbers.windows.items()}


def lately_view(numbers: Numbers, now: int) -> dict[str, Any]:
    """Rates and times of the last five minutes, and since when the oldest job waits."""
    latest = numbers.windows.get(_LATEST, _NOTHING)
    view: dict[str, Any] = {
        "throughput": {
            "processed_per_minute": round(numbers.throughput_per_second * 60, 3),
            "failed_per_minute": round(numbers.failed_per_second * 60, 3),
            "enqueued_per_minute": round(numbers.pushed_per_second * 60, 3),
            # The official command line reads whole numbers.
            "enqueued_per_min": round(numbers.pushed_per_second * 60),
            "completed_per_min": round(numbers.throughput_per_second * 60),
            "failed_per_min": round(numbers.failed_per_second * 60),
            "avg_latency_ms": numbers.avg_wait_ms or 0.0,
        },
        "latency_ms": _percentiles_view(latest.wait) if latest.wait is not None else _NO_TIMES,
        "run_ms": _percentiles_view(latest.run) if latest.run is not None else _NO_TIMES,
    }
    if numbers.oldest_available_at is not None:
        view["oldest_available_at"] = format_ms(numbers.oldest_available_at)
        view["oldest_available_age_ms"] = max(0, now - numbers.oldest_available_at)
    return view


_NO_TIMES: Final = {"p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}


def metrics_view(totals: Totals, queues: QueuePage, workers: WorkerPage) -> dict[str, Any]:
    """The event `metrics` of the statistics stream, as the admin UI reads it; `error_rate` is in percent of what ended."""
    latest = totals.windows.get(_LATEST, _NOTHING)
    ended = latest.completed + latest.discarded
    return {
        "queues": [
            {"queue": queue.name}
            | {state: getattr(queue.counts, state) for state in ("available", "active", "scheduled", "retryable")}
            for queue in queues.queues
        ],
        "throughput": {
            "processed_per_second": round(totals.throughput_per_second, 3),
            "failed_per_second": round(totals.failed_per_second, 3),
            "enqueued_per_second": round(totals.pushed_per_second, 3),
        },
        "workers": {
            "total": workers.summary.total - workers.summary.stale,
            "active": [
                {
                    "id": row.record.id,
                    "state": "stale" if row.stale else row.record.state,
                    "activeJobs": row.held or row.record.active_jobs,
                    "lastHeartbeatAt": format_ms(row.record.seen_at),
                }
                for row in workers.workers
            ],
        },
        "error_rate": round(100 * latest.discarded / ended, 3) if ended else 0.0,
    }
