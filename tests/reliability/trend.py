"""Whether what was sampled over a time goes on growing at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, linear_regression, median
from typing import Final

from msgspec import Struct

_SHARE: Final = 0.05
_FLOORS: Final = {"MiB": 8.0, "files": 8.0, "messages": 1_000.0, "ms": 50.0}
"""What is noise, by unit: the last word of a name."""


class Trend(Struct, frozen=True):
    """One value over the second half of a run. `level` if it grew by at most a twentieth there, or by what is noise."""

    name: str
    quarter: float
    half: float
    end: float
    slope_h: float
    """By how much it grows in an hour."""
    level: bool


def trends(samples: Sequence[tuple[float, Mapping[str, float]]]) -> list[Trend]:
    """Of everything that was sampled at least ten times in the second half. Times are in seconds, in order."""
    found = []
    names = dict.fromkeys(name for _, values in samples for name in values)
    for name in names:
        series = [(at, values[name]) for at, values in samples if name in values]
        later = series[len(series) // 2 :]
        if len(later) >= 10:
            found.append(_trend(name, series, later))
    return found


def _trend(name: str, series: Sequence[tuple[float, float]], later: Sequence[tuple[float, float]]) -> Trend:
    slope = linear_regression([at for at, _ in later], [value for _, value in later]).slope
    growth = slope * (later[-1][0] - later[0][0])
    allowed = max(_SHARE * fmean(value for _, value in later), _FLOORS.get(name.rpartition(" ")[2], 0.0))
    return Trend(name, _around(series, 1 / 4), _around(series, 1 / 2), _around(series, 1), slope * 3600, growth <= allowed)


def _around(series: Sequence[tuple[float, float]], share: float) -> float:
    """The median of the twentieth of the samples that ends at a share of the time."""
    end = max(round(len(series) * share), 1)
    return median(value for _, value in series[max(end - max(len(series) // 20, 3), 0) : end])
