"""Series as clients read them (ojs-admin-api §10.2)."""

from __future__ import annotations

from msgspec.structs import asdict

from ojs_api.statistics import Statistics, StatisticsPoint
from ojs_api.words import Period
from ojs_engine.wire.members import moment
from ojs_features.statistics.series import History, HistoryAsk
from ojs_index.asking.numbers import Point
from ojs_index.lists.lately import window
from ojs_index.lists.progress import progress


def history_answer(history: History, ask: HistoryAsk, period: Period) -> Statistics:
    """Return a series of one queue or of all."""
    points = [_point(point) for point in history.points]
    return Statistics(period=period, data=points, queue=ask.queue, **progress(history))


def _point(point: Point) -> StatisticsPoint:
    wait = point.wait
    return StatisticsPoint(
        **asdict(window(point)),
        timestamp=moment(point.at),
        latency_p50_ms=wait.p50 if wait is not None else 0.0,
        latency_p99_ms=wait.p99 if wait is not None else 0.0,
    )
