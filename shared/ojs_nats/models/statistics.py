"""Statistics of queues and of the whole system."""

from __future__ import annotations

from datetime import datetime

import msgspec

__all__ = ["Counts", "Percentiles", "Statistics", "StatisticsPoint", "Throughput", "Window"]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of jobs by state."""

    scheduled: int
    available: int
    pending: int
    active: int
    retryable: int
    completed: int
    cancelled: int
    discarded: int


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs a minute over the last five minutes.

    Attributes:
        avg_latency_ms: The mean wait over the last hour, from available to started.
    """

    processed_per_minute: float
    failed_per_minute: float
    enqueued_per_minute: float
    avg_latency_ms: float


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of a time, in milliseconds, at most 5 % off."""

    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of what happened within a time.

    Attributes:
        processed: How many jobs were completed.
        failed: How many jobs were discarded.
        wait_ms: How long jobs waited, by when they started.
    """

    enqueued: int
    started: int
    processed: int
    failed: int
    failed_attempts: int
    retried: int
    cancelled: int
    expired: int
    avg_latency_ms: float
    wait_ms: Percentiles | None = None
    run_ms: Percentiles | None = None


class StatisticsPoint(Window, frozen=True, kw_only=True):
    """Counts of the period that begins at `timestamp`."""

    timestamp: datetime
    latency_p50_ms: float
    latency_p99_ms: float


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Periods, in order of time.

    Attributes:
        period: The length of each.
    """

    period: str
    data: list[StatisticsPoint]
    queue: str | None = None
