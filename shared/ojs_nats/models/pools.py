"""Pools: queues that share fetches."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_nats.models.queues import StarvationPrevention

__all__ = ["Dispatches", "ListedPool", "Pool", "SchedulingStats", "SchedulingTotals"]


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: queues that share fetches."""

    name: str
    strategy: str
    queues: list[str]
    weights: dict[str, int]
    starvation_prevention: StarvationPrevention
    isolated: bool
    created_at: datetime
    updated_at: datetime


class ListedPool(Pool, frozen=True, kw_only=True):
    """A pool with its workers.

    Attributes:
        concurrency: How many jobs its workers run at once.
    """

    active_workers: int
    active_jobs: int
    concurrency: int


class Dispatches(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs that a queue gave to workers within the last minute.

    Attributes:
        dispatch_ratio_1m: The queue's part of all jobs, from 0 to 1.
        avg_wait_ms: The mean wait of those jobs.
        starved: Whether jobs wait that nothing keeps back, and none was handed out for the interval
            (ojs-fair-scheduling §11.1).
    """

    name: str
    dispatch_count_1m: int
    dispatch_ratio_1m: float
    avg_wait_ms: float
    active_jobs: int
    available_jobs: int
    starved: bool
    last_dispatch_at: datetime | None = None
    oldest_available_at: datetime | None = None
    pool: str | None = None
    strategy: str | None = None
    weight: int | None = None


class SchedulingTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of all queues."""

    queues: int
    starved: int
    active_jobs: int
    available_jobs: int


class SchedulingStats(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of jobs that queues gave to workers within the last minute.

    Attributes:
        strategy: The strategy of all pools, if they have the same.
        window: The time, as an ISO 8601 duration.
    """

    strategy: str
    window: str
    dispatch_count_1m: int
    stats: SchedulingTotals
    queues: list[Dispatches]
    computed_at: datetime
