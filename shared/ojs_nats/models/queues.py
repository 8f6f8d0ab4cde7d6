"""Queues: their state, numbers and settings."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_nats.models.statistics import Counts, Percentiles, Throughput, Window


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a queue hands out jobs, and takes any."""

    name: str
    status: str
    paused: bool


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue in a list."""

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
    """At most `limit` jobs start within any `period`."""

    limit: int
    period: str


class JobRetention(msgspec.Struct, frozen=True, kw_only=True):
    """How long a finished job's record stays, by how it ended."""

    completed: str | None = None
    cancelled: str | None = None
    discarded: str | None = None
    dead_letter: str | None = None


class DeadLetterLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long dead letters stay, and how many."""

    max_age: str | None = None
    max_count: int | None = None


class DeadLetterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is set for dead letters (ojs-dead-letter §5.1)."""

    retention: DeadLetterLimits


class StarvationPrevention(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue, or each queue of a pool, is guaranteed while it has jobs."""

    enabled: bool
    rotation_interval: str | None = None
    min_dispatch_ratio: float | None = None


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The effective policy of a job (ojs-retry §3)."""

    max_attempts: int
    initial_interval: str
    backoff_coefficient: float
    max_interval: str
    jitter: bool
    non_retryable_errors: list[str]
    on_exhaustion: str
    backoff_strategy: str


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings under the names that ojs-queue-config gives them. What is set nowhere is left out."""

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
    """A queue with its settings and numbers. `queue` is as in the answers to pause, resume and statistics."""

    queue: QueueStatus
    depth: int
    config: QueueSettings
    own_config: QueueSettings
    updated_at: datetime | None = None
    paused_at: datetime | None = None


class CountedQueue(Counts, frozen=True, kw_only=True):
    """A queue, and how many of its jobs are in each state."""

    name: str
    status: str
    paused: bool
    total: int


class QueueNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of a queue; `avg_duration_ms` and `avg_wait_ms` over the last hour."""

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
    """A queue's numbers, now and lately."""

    queue: CountedQueue
    stats: QueueNumbers
    computed_at: datetime


class PriorityStats(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs wait to be fetched, by priority, the highest first (ojs-priority)."""

    queue: str
    counts_by_priority: dict[str, int]
    total: int


class SwitchedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that was paused or resumed. `paused` stands beside it, too (ojs-admin-api §6.3)."""

    queue: QueueStatus
    paused: bool
    paused_at: datetime | None = None
    resumed_at: datetime | None = None


class ConfiguredQueue(QueueStatus, frozen=True, kw_only=True):
    """A queue with its settings."""

    config: QueueSettings
    own_config: QueueSettings
    created_at: datetime | None = None
    updated_at: datetime | None = None
    paused_at: datetime | None = None


class DeletedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a queue and its jobs."""

    queue: str
    strategy: str
    jobs_affected: int
    jobs_remaining: int
    state: str
    target_queue: str | None = None


class PurgedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs were removed."""

    queue: str
    purged_count: int
    remaining: int
    states: list[str]
