"""Statistics of queues and of the whole system."""

from __future__ import annotations

import msgspec

from ojs_api.statistics import Percentiles, Statistics, StatisticsPoint, Throughput, Window

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
