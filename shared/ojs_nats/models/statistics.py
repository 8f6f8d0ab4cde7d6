"""Statistics of queues and of the whole system."""

from __future__ import annotations

from ojs_api.statistics import Counts, Percentiles, Statistics, StatisticsPoint, Throughput, Window

__all__ = ["Counts", "Percentiles", "Statistics", "StatisticsPoint", "Throughput", "Window"]
