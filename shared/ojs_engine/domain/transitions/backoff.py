"""How long a failed job waits for its next attempt (ojs-retry §3, §5)."""

from __future__ import annotations

import math

from ojs_engine.domain.job import Retry


def delay_ms(retry: Retry, failures: int, chance: float) -> int:
    """Milliseconds before the retry that follows the `failures`-th failure (from 1); `chance` in [0, 1) drives the jitter.

    The cap holds before and after the jitter, which multiplies by 0.5 up to 1.5.
    """
    delay = min(_nominal(retry, failures), retry.max_interval_ms)
    if retry.jitter:
        delay = min(delay * (0.5 + chance), retry.max_interval_ms)
    return max(0, round(delay))


def _nominal(retry: Retry, n: int) -> float:
    try:
        match retry.backoff_strategy:
            case "none" | "constant":
                return retry.initial_interval_ms
            case "linear":
                return retry.initial_interval_ms * n
            case "exponential":
                return retry.initial_interval_ms * math.pow(retry.backoff_coefficient, n - 1)
            case "polynomial":
                return retry.initial_interval_ms * math.pow(n, retry.backoff_coefficient)
    except OverflowError:
        return retry.max_interval_ms
