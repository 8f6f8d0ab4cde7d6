"""Numbers of queues and of the whole system."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs by state."""

    scheduled: int
    available: int
    pending: int
    active: int
    retryable: int
    completed: int
    cancelled: int
    discarded: int


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs a minute over the last five minutes; the mean wait, from available to started, over the last hour."""

    processed_per_minute: float
    failed_per_minute: float
    enqueued_per_minute: float
    avg_latency_ms: float


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds, at most 5 % off."""

    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """What happened within a time. `processed` jobs completed, `failed` ones were discarded; a wait ends when a job starts."""

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
    """What happened from `timestamp` on."""

    timestamp: datetime
    latency_p50_ms: float
    latency_p99_ms: float


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Points in order of time."""

    period: str
    data: list[StatisticsPoint]
    queue: str | None = None
