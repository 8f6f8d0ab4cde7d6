"""Pools: queues that share fetches."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_nats.models.queues import StarvationPrevention


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Queues that share fetches."""

    name: str
    strategy: str
    queues: list[str]
    weights: dict[str, int]
    starvation_prevention: StarvationPrevention
    isolated: bool
    created_at: datetime
    updated_at: datetime


class ListedPool(Pool, frozen=True, kw_only=True):
    """A pool with what works for it: `concurrency` is how many jobs its workers take at once."""

    active_workers: int
    active_jobs: int
    concurrency: int


class Dispatches(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue gave within the last minute. It is starved if jobs wait, nothing keeps them back, and none was handed out
    for the interval (ojs-fair-scheduling §11.1).
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
    """All queues together."""

    queues: int
    starved: int
    active_jobs: int
    available_jobs: int


class SchedulingStats(msgspec.Struct, frozen=True, kw_only=True):
    """What each queue gave within the last minute. `strategy` is that of all pools, if they have the same."""

    strategy: str
    window: str
    dispatch_count_1m: int
    stats: SchedulingTotals
    queues: list[Dispatches]
    computed_at: datetime
