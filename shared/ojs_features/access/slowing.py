"""Who shows wrong keys waits for the answer: the longer, the more of them came from its address lately."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import ClassVar, Final

from ojs_link.timings import Order, Timings

_MOST_ADDRESSES: Final = 4_096


class SlowingTimings(Timings, frozen=True, kw_only=True):
    """How long the answers to wrong keys wait."""

    first_s: float = 0.05
    """The answer to the second wrong key from an address; each further one waits twice as long."""
    longest_s: float = 2.0
    """The longest wait."""
    forget_s: float = 60.0
    """After this long without a wrong key an address begins anew."""
    order: ClassVar[Order] = (
        ("first_s", "longest_s", "waits would grow shorter"),
        ("longest_s", "forget_s", "an address would be forgotten while its answer waits"),
    )


class Slowing:
    """Counts wrong keys by address, for some thousand addresses at most. Right keys never wait."""

    def __init__(self, now: Callable[[], float] = time.monotonic, timings: SlowingTimings = SlowingTimings()) -> None:
        self._timings = timings
        self._now = now
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """How many, and when the last came."""

    def pause(self, address: str) -> float:
        """Count a wrong key, and return how many seconds its answer should wait."""
        now = self._now()
        times, last = self._wrong.pop(address, (0, now))
        if now - last > self._timings.forget_s:
            times = 0
        self._wrong[address] = times + 1, now
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        return 0.0 if times == 0 else min(self._timings.longest_s, self._timings.first_s * 2.0 ** min(times - 1, 10))
