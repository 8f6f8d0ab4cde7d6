"""Distributions of times that can be added up: how many values fell into each of a fixed row of buckets.

A bucket's upper bound is at most 1.1 times its lowest value, so what is read from it is at most 5 % away from the value that
was measured. Values up to 20 ms have a bucket each and are exact. The buckets never change: records hold their numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from ojs_index.asking.numbers import Percentiles

ACCURACY: Final = 0.05
"""The largest relative error of a percentile."""
_GROWTH: Final = 11, 10
_LONGEST_MS: Final = 366 * 86_400_000
"""What takes longer counts as this."""

Buckets = dict[int, int]
"""How many values, by the number of their bucket."""


def _bounds() -> list[int]:
    bounds = [0]
    times, by = _GROWTH
    while bounds[-1] < _LONGEST_MS:
        bounds.append(max(bounds[-1] + 1, bounds[-1] * times // by))
    return bounds


_BOUNDS: Final = _bounds()
_LAST: Final = len(_BOUNDS) - 1


def bucket_of(value_ms: int) -> int:
    """The bucket of a whole number of milliseconds; below zero counts as zero."""
    return min(bisect_left(_BOUNDS, value_ms), _LAST)


def value_of(bucket: int) -> float:
    """The value (ms) that is least wrong for all that the bucket holds."""
    if bucket == 0:
        return 0.0
    low, high = _BOUNDS[bucket - 1] + 1, _BOUNDS[bucket]
    return 2 * low * high / (low + high)


def add(into: Buckets, more: Buckets) -> None:
    """Add the values of `more`."""
    for bucket, number in more.items():
        into[bucket] = into.get(bucket, 0) + number


def percentiles(buckets: Buckets) -> Percentiles | None:
    """None without a value. The p-th percentile is the smallest value that p % of all values don't exceed."""
    count = sum(buckets.values())
    if not count:
        return None
    wanted = [-(-count * p // 100) for p in (50, 90, 95, 99)]
    found: list[float] = []
    passed = 0
    highest = max(buckets)
    for bucket in sorted(buckets):
        passed += buckets[bucket]
        while len(found) < len(wanted) and passed >= wanted[len(found)]:
            found.append(round(value_of(bucket), 1))
    p50, p90, p95, p99 = found
    return Percentiles(count=count, p50=p50, p90=p90, p95=p95, p99=p99, max=round(value_of(highest), 1))
