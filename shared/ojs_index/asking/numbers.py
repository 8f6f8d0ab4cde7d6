"""What is asked of the projectors about numbers, and what they answer: queues and totals."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from ojs_engine.domain.job import State
from ojs_index.asking.messages import Answer, PageAnswer

BACKLOG_STEP_MS: Final = 180_000
BACKLOG_STEPS: Final = 20
"""Steps of `Queue.backlog`: the last hour."""


class Counts(Struct, frozen=True, kw_only=True):
    """Jobs by state."""

    scheduled: int = 0
    available: int = 0
    pending: int = 0
    active: int = 0
    retryable: int = 0
    completed: int = 0
    cancelled: int = 0
    discarded: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, state) for state in State)

    @property
    def unended(self) -> int:
        return self.total - self.completed - self.cancelled - self.discarded


class Percentiles(Struct, frozen=True, kw_only=True):
    """Of `count` values, in milliseconds; each at most 5 % off. `max` is that of the highest bucket."""

    count: int
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Point(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A count of what happened in a queue, or in all of them, from `at` (Unix ms) on."""

    at: int
    pushed: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    discarded: int = 0
    cancelled: int = 0
    expired: int = 0
    avg_wait_ms: float | None = None
    """From available to started, of the attempts that started; None if there are none."""
    avg_run_ms: float | None = None
    """Of the attempts that completed."""
    wait: Percentiles | None = None
    """From available to started."""
    run: Percentiles | None = None
    """From started to the end of the attempt, however it ended."""


class Numbers(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """What is counted of one queue, or of all together."""

    counts: Counts
    dead_letter: int = 0
    completed_last_hour: int = 0
    failed_last_hour: int = 0
    """Discarded jobs."""
    avg_duration_ms: float | None = None
    """Of the attempts that completed within the last hour; None if there are none."""
    avg_wait_ms: float | None = None
    """From available to started, of the attempts that started within the last hour."""
    throughput_per_second: float = 0.0
    """Completed jobs, over the last five minutes."""
    failed_per_second: float = 0.0
    """Discarded jobs, over the same."""
    pushed_per_second: float = 0.0
    """Over the same."""
    oldest_available_at: int | None = None
    """Since when the job waits that has waited longest; None if none does."""
    windows: dict[str, Point] = field(default_factory=dict)
    """What happened lately: `5m`, and unless a page of queues is asked for `1h` and `1d`."""


class Queue(Numbers, frozen=True, kw_only=True, omit_defaults=True):
    """A queue and its numbers. Whether it is paused stands in its own record."""

    name: str
    created_at: int | None = None
    """When its first job known here was created; None if none is known."""
    backlog: tuple[int, ...] = ()
    """Where it is asked for, how many of its jobs had not ended: at the ends of `BACKLOG_STEP_MS`, now at last."""


class Levels(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """How many jobs of a queue are available, by priority, the highest first."""

    counts: dict[int, int]


class QueuePage(PageAnswer, frozen=True, kw_only=True, omit_defaults=True):
    queues: list[Queue]
    total: int


class Totals(Numbers, frozen=True, kw_only=True, omit_defaults=True):
    """All queues together."""

    queues: int = 0
    queues_busy: int = 0
    """Queues with jobs that are available, active or waiting for a retry."""
