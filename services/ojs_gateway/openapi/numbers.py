"""Statistics as they are described: rates, times and points of time (docs/statistics.md)."""

from __future__ import annotations

from typing import Final

from ojs_gateway.openapi.common import COUNT
from ojs_gateway.openapi.schema import TIME, Named, Schema, map_of, number, record

_TIMES: Final = Named(
    "Percentiles",
    record(dict.fromkeys(("p50", "p90", "p95", "p99", "max"), number(0)), about="Milliseconds, at most 5 % off."),
)
_COUNTED: Final = ("started", "completed", "processed", "failed", "failed_attempts", "retried", "cancelled", "expired")
_ACTIVITY: Final[dict[str, Schema]] = {
    **dict.fromkeys(("enqueued", *_COUNTED), COUNT),
    **dict.fromkeys(("avg_latency_ms", "latency_p50_ms", "latency_p99_ms"), number(0)),
}
_MEASURED: Final[dict[str, Schema]] = {"wait_ms": _TIMES, "run_ms": _TIMES}

POINT: Final = Named("Point", record({"timestamp": TIME, **_ACTIVITY}, _MEASURED, about="What happened from `timestamp` on."))
WINDOWS: Final = map_of(
    Named("Window", record(_ACTIVITY, _MEASURED)), about="The last five minutes, hour and day: `5m`, `1h` and `1d`."
)
_THROUGHPUT: Final = Named(
    "Throughput",
    record(
        {
            **dict.fromkeys(("processed_per_minute", "failed_per_minute", "enqueued_per_minute", "avg_latency_ms"), number(0)),
            **dict.fromkeys(("enqueued_per_min", "completed_per_min", "failed_per_min"), COUNT),
        },
        about="Over the last five minutes; `avg_latency_ms` over the last hour.",
    ),
)
LATELY: Final[dict[str, Schema]] = {"throughput": _THROUGHPUT, "latency_ms": _TIMES, "run_ms": _TIMES}
OLDEST: Final[dict[str, Schema]] = {"oldest_available_at": TIME, "oldest_available_age_ms": COUNT}
"""There while a job waits."""
