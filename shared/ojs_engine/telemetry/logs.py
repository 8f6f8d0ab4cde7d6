"""What code asks ahead of a line in the log: whether it is worth one."""

from __future__ import annotations

import time
from typing import Final


class Verbosity:
    """Whether this process logs at `debug`: to be asked ahead of a line on the way of every job."""

    debug = False


verbosity: Final = Verbosity()


class SeldomLog:
    """For what may happen with every request: is it worth a line in the log again? Once `every_s`."""

    def __init__(self, every_s: float = 60.0) -> None:
        self._every_s = every_s
        self._next_at = 0.0

    def due(self) -> bool:
        """Whether to log now; if so, whoever asks does."""
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + self._every_s
        return True
