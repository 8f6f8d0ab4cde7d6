"""Who shows wrong keys waits for the answer: the longer, the more of them came from its address lately."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_FIRST_S: Final = 0.05
_LONGEST_S: Final = 2.0
_FORGET_S: Final = 60.0
_MOST_ADDRESSES: Final = 4_096


class Slowing:
    """Counts wrong keys by address, for some thousand addresses at most. Right keys never wait."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """How many, and when the last came."""

    def pause(self, address: str) -> float:
        """Count a wrong key, and return how many seconds its answer should wait."""
        now = self._now()
        times, last = self._wrong.pop(address, (0, now))
        if now - last > _FORGET_S:
            times = 0
        self._wrong[address] = times + 1, now
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        return 0.0 if times == 0 else min(_LONGEST_S, _FIRST_S * 2.0 ** min(times - 1, 10))
