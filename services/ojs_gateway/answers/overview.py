"""What the gateway says of itself and of the system beside health and manifest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from ojs_engine.wire.members import Count
from ojs_index.asking.messages import WorkerSummary
from ojs_index.asking.numbers import Totals

_Number = Annotated[float, Meta(ge=0)]


class BackendConfig(Struct, kw_only=True):
    """What nats-server keeps the records in."""

    type: str
    server_version: str
    namespace: Annotated[str, Meta(description="How all names in NATS begin (`--namespace`).")]
    replicas: Count
    streams: Sequence[str]


class SystemConfig(Struct, kw_only=True):
    """What this gateway is set to; nothing in it is secret."""

    version: str
    backend: BackendConfig
    limits: dict[str, float]
    test_mode: bool
    middleware: Sequence[str]


class MiddlewareEntry(Struct):
    """A function around pushes or handlers."""

    name: str
    phase: str
    order: Count


class MiddlewareAnswer(Struct):
    """Functions around pushes and handlers in the server, of which it has none: clients and workers have their own."""

    enqueue: list[MiddlewareEntry]
    execution: list[MiddlewareEntry]


class SystemMetrics(Struct, kw_only=True):
    """A few numbers of the whole system. Its totals are of jobs that are still stored: finished ones leave in time."""

    uptime_seconds: Count
    jobs_enqueued_total: Count
    jobs_completed_total: Count
    jobs_failed_total: Count
    jobs_active: Count
    queues_active: Count
    workers_active: Count
    avg_latency_ms: _Number
    throughput_per_second: _Number


class ResetAnswer(Struct):
    """Everything is wiped."""

    reset: bool


def system_metrics(totals: Totals, workers: WorkerSummary, uptime_s: int) -> SystemMetrics:
    """The system by its records."""
    counts = totals.counts
    return SystemMetrics(
        uptime_seconds=uptime_s,
        jobs_enqueued_total=counts.total,
        jobs_completed_total=counts.completed,
        jobs_failed_total=counts.discarded,
        jobs_active=counts.active,
        queues_active=totals.queues_busy,
        workers_active=workers.total - workers.stale,
        avg_latency_ms=totals.avg_wait_ms or 0.0,
        throughput_per_second=totals.throughput_per_second,
    )
