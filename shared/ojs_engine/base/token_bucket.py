"""A limit on how often something may happen: so many times a second.

What didn't happen is made up for, but no more than one second's worth: as many at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class TokenBucket:
    """What may happen now of something that is limited. `clock` counts seconds; the rate may change from call to call."""

    __slots__ = ("_clock", "_counted_at", "_level")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._level = 0.0
        """How much may happen. Below zero a large batch was let in, and is waited for."""
        self._counted_at = -math.inf

    def take(self, rate: int, number: int = 1) -> int:
        """Take `number` at `rate` a second; return 0, or in how many seconds there is room for one, and nothing is taken.

        A batch is let in whole once there is room for one, or a large one never would be. What comes next waits for it.
        """
        now = self._clock()
        self._level = self._filled(rate, now)
        self._counted_at = now
        if self._level < 1:
            return math.ceil((1 - self._level) / rate)
        self._level -= number
        return 0

    def left(self, rate: int) -> tuple[int, int]:
        """Return how many may be taken now, and in how many seconds one may."""
        level = self._filled(rate, self._clock())
        return max(0, math.floor(level)), 0 if level >= 1 else math.ceil((1 - level) / rate)

    def _filled(self, rate: int, now: float) -> float:
        return min(float(rate), self._level + (now - self._counted_at) * rate)
