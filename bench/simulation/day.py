"""A day of jobs as a flow through one shard: the stream takes them, the projector follows. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

DAY_S: Final = 86_400
STEP_S: Final = 60
_STEPS: Final = DAY_S // STEP_S
_DAYS: Final = 2
"""The second day begins with what the first has left: what isn't caught up in a night adds up."""


class Followed(NamedTuple):
    """How a station got on.

    `lag_s` is the longest time that something waited there, `behind_h` how long a day it had work left;
    `left` is what remained at the end of the first and of the second day: if it grows, the station never catches up.
    """

    used: float
    lag_s: float
    behind_h: float
    left: tuple[float, float]

    @property
    def keeps_up(self) -> bool:
        return self.left[1] <= self.left[0] + 1


@cache
def curve(peak: float) -> tuple[float, ...]:
    """Return the rate of each minute as a multiple of the day's mean: one wave, whose highest is `peak` times the mean.

    Raises ValueError for a peak below 1, or above what a wave of minutes can have.
    """
    if not 1 <= peak <= 20:  # said in the message
        raise ValueError(f"the peak of a day is 1 to 20 times its mean, not {peak}")
    low, high = 0.0, 1_000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if max(_wave(middle)) < peak else (low, middle)
    return tuple(_wave(low))


def _wave(sharpness: float) -> list[float]:
    raw = [math.exp(sharpness * (math.cos(2 * math.pi * (step / _STEPS - 0.5)) - 1)) for step in range(_STEPS)]
    mean = sum(raw) / _STEPS
    return [one / mean for one in raw]


def follow(arriving: Sequence[float], capacity: float) -> tuple[Followed, list[float]]:
    """Return how a station does that can deal with `capacity` a second, and what it lets through in each minute.

    `arriving` is a day in minutes, in jobs a second, and comes twice.
    """
    waiting = 0.0
    longest = 0.0
    behind = 0
    left: list[float] = []
    through: list[float] = []
    for _ in range(_DAYS):
        through = []
        behind = 0
        for rate in arriving:
            done = min(waiting + rate * STEP_S, capacity * STEP_S)
            waiting += rate * STEP_S - done
            through.append(done / STEP_S)
            longest = max(longest, waiting / capacity)
            behind += waiting > 1
        left.append(waiting)
    followed = Followed(max(arriving) / capacity, longest, behind * STEP_S / 3600, (left[0], left[1]))
    return followed, through
