"""Queues: their state, numbers and settings."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_api.jobs import RetryPolicy
from ojs_api.queues import StarvationPrevention
from ojs_nats.models.statistics import Counts, Percentiles, Throughput, Window

__all__ = [
    "ConfiguredQueue",
    "CountedQueue",
    "DeadLetterLimits",
    "DeadLetterSettings",
    "DeletedQueue",
    "JobRetention",
    "PriorityStats",
    "PurgedQueue",
    "Queue",
    "QueueDetail",
    "QueueNumbers",
    "QueueRate",
    "QueueSettings",
    "QueueStats",
    "QueueStatus",
    "RetryPolicy",
    "StarvationPrevention",
    "SwitchedQueue",
]


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's state.

    Attributes:
        status: `active`, `paused` or `draining`.
    """

    name: str
    status: str
    paused: bool


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue in a list.

    Attributes:
        latency_ms: How long jobs wait, from available to started.
        run_ms: How long jobs run.
        pending: How many jobs are available.
        active: How many jobs run.
    """

    throughput: Throughput
    latency_ms: Percentiles
    run_ms: Percentiles
    name: str
    status: str
    paused: bool
    counts: Counts
    pending: int | None = None
    active: int | None = None
    oldest_available_at: datetime | None = None
    oldest_available_age_ms: int | None = None
    created_at: datetime | None = None


class QueueRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate: at most `limit` starts in any `period`."""

    limit: int
    period: str


class JobRetention(msgspec.Struct, frozen=True, kw_only=True):
    """Times that ended jobs are kept for, by how they ended, as ISO 8601 durations."""

    completed: str | None = None
    cancelled: str | None = None
    discarded: str | None = None
    dead_letter: str | None = None


class DeadLetterLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of dead letters: how long they are kept, and how many."""

    max_age: str | None = None
    max_count: int | None = None


class DeadLetterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of dead letters (ojs-dead-letter §5.1)."""

    retention: DeadLetterLimits


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a queue, by the names of ojs-queue-config. Those that aren't set are None or empty.

    Attributes:
        visibility_timeout: In seconds.
        default_timeout: In seconds.
    """

    max_size: int | None = None
    overflow_policy: str | None = None
    warning_threshold: float | None = None
    concurrency: int | None = None
    rate_limit: QueueRate | None = None
    starvation_prevention: StarvationPrevention | None = None
    visibility_timeout: float | None = None
    default_timeout: float | None = None
    default_retry: RetryPolicy | None = None
    retention: JobRetention | None = None
    dead_letter: DeadLetterSettings | None = None
    allowed_job_types: list[str] = []
    strict_pause: bool = False
    schema_validation: str | None = None


class QueueDetail(Queue, frozen=True, kw_only=True):
    """A queue with its settings and numbers.

    Attributes:
        depth: How many jobs wait.
        config: The settings that count, with those that all queues share.
        own_config: The settings that were made for this queue.
    """

    queue: QueueStatus
    depth: int
    config: QueueSettings
    own_config: QueueSettings
    updated_at: datetime | None = None
    paused_at: datetime | None = None


class CountedQueue(Counts, frozen=True, kw_only=True):
    """A queue, with the number of its jobs in each state."""

    name: str
    status: str
    paused: bool
    total: int


class QueueNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of a queue.

    Attributes:
        depth: How many jobs wait.
        dead: How many dead letters it has.
        avg_duration_ms: The mean run over the last hour.
        avg_wait_ms: The mean wait over the last hour.
        load: How many jobs are available or active.
        pressure: `depth` as a part of `max_depth`.
    """

    throughput: Throughput
    latency_ms: Percentiles
    run_ms: Percentiles
    queue: str
    depth: int
    dead: int
    completed_last_hour: int
    failed_last_hour: int
    avg_duration_ms: float
    avg_wait_ms: float
    throughput_per_second: float
    windows: dict[str, Window]
    oldest_available_at: datetime | None = None
    oldest_available_age_ms: int | None = None
    load: int | None = None
    max_depth: int | None = None
    pressure: float | None = None


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's numbers, now and over the last hour."""

    queue: CountedQueue
    stats: QueueNumbers
    computed_at: datetime


class PriorityStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of jobs that wait, by priority, the highest first (ojs-priority)."""

    queue: str
    counts_by_priority: dict[str, int]
    total: int


class SwitchedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue after it was paused or resumed."""

    queue: QueueStatus
    paused: bool
    paused_at: datetime | None = None
    resumed_at: datetime | None = None


class ConfiguredQueue(QueueStatus, frozen=True, kw_only=True):
    """A queue with its settings.

    Attributes:
        config: The settings that count, with those that all queues share.
        own_config: The settings that were made for this queue.
    """

    config: QueueSettings
    own_config: QueueSettings
    created_at: datetime | None = None
    updated_at: datetime | None = None
    paused_at: datetime | None = None


class DeletedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a queue's deletion."""

    queue: str
    strategy: str
    jobs_affected: int
    jobs_remaining: int
    state: str
    target_queue: str | None = None


class PurgedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a purge: how many jobs were deleted."""

    queue: str
    purged_count: int
    remaining: int
    states: list[str]
