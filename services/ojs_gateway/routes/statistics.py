"""Statistics over time (docs/statistics.md)."""

from __future__ import annotations

from typing import Final, get_args

from ojs_core.api.common import QUEUE_NAME
from ojs_core.api.route import Other, Parameter, Part, Route
from ojs_core.api.schema import TEXT, one_of
from ojs_core.wire.statistics.answers import HistoryAnswer
from ojs_core.wire.statistics.requests import Period
from ojs_gateway.handlers.statistics import StatisticsHandlers

_PERIOD: Final = one_of(*get_args(Period))
_ABOUT: Final = "A point for every period, in order. Minutes are kept for 24 hours, hours for 31 days."
_QUERY: Final = (
    Parameter("period", _PERIOD | {"default": "5m"}, "The length of a point."),
    Parameter("since", TEXT, "A timestamp, or so long ago: 30m, 24h, 7d."),
    Parameter("from", TEXT, "Another name of `since`.", same_as="since"),
    Parameter("until", TEXT, "The same for the end."),
    Parameter("to", TEXT, "Another name of `until`.", same_as="until"),
)
_ERRORS: Final = ("invalid_request", "queue_name_too_long")

STATISTICS: Final = Part(
    "Statistics",
    "What happened when, and how long it took",
    (
        Route(
            StatisticsHandlers,
            StatisticsHandlers.history,
            ("GET /admin/stats/history getStatsHistory",),
            "read",
            "Read statistics over time",
            {200: HistoryAnswer},
            _ABOUT,
            query=(*_QUERY, Parameter("queue", QUEUE_NAME, "Of this queue alone.")),
            errors=_ERRORS,
            narrowing="parameter",
        ),
        Route(
            StatisticsHandlers,
            StatisticsHandlers.queue_history,
            ("GET /queues/{queue}/stats/history getQueueStatsHistory", "GET /admin/queues/{queue}/stats/history"),
            "read",
            "Read a queue's statistics over time",
            {200: HistoryAnswer},
            _ABOUT,
            query=_QUERY,
            errors=_ERRORS,
            narrowing="queue",
        ),
        Route(
            StatisticsHandlers,
            StatisticsHandlers.stream,
            ("GET /admin/stats/stream streamStats",),
            "read",
            "Follow the statistics",
            {200: Other("text/event-stream", "The event `stats` every two seconds: as `GET /admin/stats`.")},
        ),
    ),
)
