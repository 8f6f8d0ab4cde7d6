"""Pools: queues that share fetches."""

from __future__ import annotations

from ojs_api.pools import Dispatches, ListedPool, Pool, SchedulingStats, SchedulingTotals

__all__ = ["Dispatches", "ListedPool", "Pool", "SchedulingStats", "SchedulingTotals"]
