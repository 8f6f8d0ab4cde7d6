"""Trouble that lasts: logged when it begins, then ever more seldom, and once when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Final

from ojs_link.timings import Order, Timings

_REASONS: Final = 5
"""How many reasons are logged when they are new. A reason may hold a number that is another each time."""


class LastingTimings(Timings, frozen=True, kw_only=True):
    """How often trouble is logged that goes on."""

    first_s: float = 30.0
    """From its first line to the second; each pause is twice as long as the one before."""
    longest_s: float = 600.0
    """The longest pause."""
    order: ClassVar[Order] = (("first_s", "longest_s", "pauses would grow shorter"),)


class Lasting:
    """One trouble of one thing, which may begin and end again and again."""

    def __init__(self, now: Callable[[], float] = time.monotonic, timings: LastingTimings = LastingTimings()) -> None:
        self._timings = timings
        self._now = now
        self._since: float | None = None
        self._next_at = 0.0
        self._pause_s = timings.first_s
        self._reasons: set[str] = set()

    def noted(self, reason: str = "") -> float | None:
        """Note that the trouble is there.

        Args:
            reason: What is wrong. Each of the first few of one trouble is worth a line when it is new.

        Returns:
            For how many seconds it has been there, if that is worth a line in the log: at once, after 30 s, and then
            each time after twice as long, at last every ten minutes. None if it isn't.

        """
        now = self._now()
        if self._since is None:
            self._since, self._pause_s, self._reasons = now, self._timings.first_s, {reason}
            self._next_at = now + self._pause_s
            return 0.0
        if now >= self._next_at:
            self._pause_s = min(2 * self._pause_s, self._timings.longest_s)
            self._next_at = now + self._pause_s
        elif reason in self._reasons or len(self._reasons) >= _REASONS:
            return None
        if len(self._reasons) < _REASONS:
            self._reasons.add(reason)
        return now - self._since

    @property
    def is_there(self) -> bool:
        """Whether it was noted, and isn't over."""
        return self._since is not None

    def over(self) -> float | None:
        """Note that it is over. Returns after how many seconds; None if there was none."""
        since, self._since = self._since, None
        return None if since is None else self._now() - since
