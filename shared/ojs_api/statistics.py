"""Statistics of queues and of the whole system: lately, and over time (docs/statistics.md)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from ojs_api.members import Count, Moment, Part, QueueName, one_of
from ojs_api.operations import Operation, Other, Parameter, Subject
from ojs_api.pages import PAGED, Indexed
from ojs_api.words import Period

_Share = Annotated[float, Meta(extra_json_schema={"minimum": 0})]
Milliseconds = Annotated[_Share, Meta(description="Milliseconds.")]


class Percentiles(Struct, frozen=True):
    """Milliseconds, at most 5 % off."""

    p50: Milliseconds
    p90: Milliseconds
    p95: Milliseconds
    p99: Milliseconds
    max: Milliseconds


class Window(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened within a time. `processed` jobs completed, `failed` ones were discarded; a wait ends when a job starts."""

    enqueued: Count
    started: Count
    processed: Count
    failed: Count
    failed_attempts: Count
    retried: Count
    cancelled: Count
    expired: Count
    avg_latency_ms: Annotated[_Share, Meta(description="The mean wait.")]
    wait_ms: Percentiles | None = None
    run_ms: Percentiles | None = None


class StatisticsPoint(Window, frozen=True, kw_only=True):
    """What happened from `timestamp` on."""

    timestamp: Moment
    latency_p50_ms: Annotated[_Share, Meta(description="Of the waits; 0 where nothing started.")]
    latency_p99_ms: Milliseconds


class Statistics(Indexed, frozen=True, kw_only=True, omit_defaults=True):
    """Points in order of time."""

    period: Annotated[str, one_of(Period)]
    data: list[StatisticsPoint]
    queue: str | None = None


class Throughput(Struct, frozen=True):
    """Jobs a minute over the last five minutes; the mean wait, from available to started, over the last hour."""

    processed_per_minute: _Share
    failed_per_minute: _Share
    enqueued_per_minute: _Share
    avg_latency_ms: Milliseconds


class Counts(Struct, frozen=True, kw_only=True):
    """Counts of jobs by state."""

    scheduled: Count
    available: Count
    pending: Count
    active: Count
    retryable: Count
    completed: Count
    cancelled: Count
    discarded: Count


Windows = Annotated[dict[str, Window], Meta(description="The last five minutes, hour and day: `5m`, `1h` and `1d`.")]


class Lately(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rates and times of the last five minutes, and since when the oldest job waits."""

    throughput: Throughput
    latency_ms: Annotated[Percentiles, Meta(description="Waits, from available to started.")]
    run_ms: Annotated[Percentiles, Meta(description="How long jobs ran.")]
    oldest_available_at: Moment | None = None
    oldest_available_age_ms: Count | None = None


class SystemStats(Lately, frozen=True, kw_only=True, omit_defaults=True):
    """Totals of the whole system, or of one queue. `workers` counts those that are there and not stale."""

    queues: Count
    workers: Count
    workers_stale: Count
    jobs: Annotated[Counts, Meta(description="Jobs that are still stored.")]
    dead_letter: Count
    windows: Windows
    uptime_seconds: Annotated[Count, Meta(description="The time since the gateway that answers was started.")]
    partial: (
        Annotated[bool, Meta(description="The index is being built anew: what is there is right, but not all is there.")] | None
    ) = None
    index_progress: Part | None = None


_ABOUT: Final = "A point for every period, in order. Minutes are kept for 24 hours, hours for 31 days."
_SPAN: Final = (
    Parameter("period", Annotated[Period, Meta(extra_json_schema={"default": "5m"})], "The length of a point."),
    Parameter("since", str, "A timestamp, or so long ago: 30m, 24h, 7d."),
    Parameter("from", str, "Another name of `since`.", same_as="since"),
    Parameter("until", str, "The same for the end."),
    Parameter("to", str, "Another name of `until`.", same_as="until"),
)
_REFUSED: Final = ("invalid_request", "queue_name_too_long")

# fmt: off
TOTALS: Final = Operation(
    "adminStats", "GET /admin/stats", "read", "Read the system's totals", {200: SystemStats},
    query=(
        Parameter("queue", QueueName, "Of this queue alone."),
        Parameter("detail", bool, "Lists the queues, for the `ojs` CLI."),
        *PAGED,
    ),
    errors=("queue_name_too_long",),
)
HISTORY: Final = Operation(
    "getStatsHistory", "GET /admin/stats/history", "read", "Read statistics over time", {200: Statistics}, _ABOUT,
    query=(*_SPAN, Parameter("queue", QueueName, "Of this queue alone.")), errors=_REFUSED, narrowing="parameter",
)
QUEUE_HISTORY: Final = Operation(
    "getQueueStatsHistory", "GET /queues/{queue}/stats/history", "read", "Read a queue's statistics over time",
    {200: Statistics}, _ABOUT, also=("GET /admin/queues/{queue}/stats/history",), query=_SPAN, errors=_REFUSED,
    narrowing="queue",
)
STREAM: Final = Operation(
    "streamStats", "GET /admin/stats/stream", "read", "Follow the statistics",
    {200: Other("text/event-stream", "The event `stats` every two seconds: as `GET /admin/stats`.")},
)
STATISTICS: Final = Subject(
    "Statistics", "What happened when, and how long it took", (TOTALS, STREAM, HISTORY, QUEUE_HISTORY),
)
