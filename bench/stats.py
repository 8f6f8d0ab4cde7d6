"""Percentiles, and latencies against a schedule. Pure; times in seconds, results in milliseconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct


class Quantiles(Struct, frozen=True):
    """A distribution in milliseconds. `count` is the number of samples."""

    count: int
    p50: float
    p90: float
    p99: float
    max: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of sorted samples: the smallest sample that `share` (0…1) of them don't exceed.

    Raises ValueError for no samples or a share outside 0…1.
    """
    if not ordered:
        raise ValueError("no samples")
    if not 0 <= share <= 1:
        raise ValueError(f"a share lies between 0 and 1, not {share}")
    # Rounding first: 0.07 * 100 is 7.000000000000001, and that is rank 7.
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]


def quantiles(seconds: Iterable[float]) -> Quantiles | None:
    """The distribution of samples given in seconds; None for no samples."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    p50, p90, p99 = (percentile(ordered, share) * 1000 for share in (0.50, 0.90, 0.99))
    return Quantiles(len(ordered), p50, p90, p99, ordered[-1] * 1000)


def from_schedule(scheduled: Sequence[float], received: Mapping[int, float]) -> list[float]:
    """Latencies of an open-loop run, corrected for coordinated omission.

    Sample i starts at the time the schedule had for it, not at the time it could be sent: a server that stalls also pays
    for the sends it held up. A sample without an answer is in no percentile; whoever calls this counts it.
    """
    return [received[index] - at for index, at in enumerate(scheduled) if index in received]
