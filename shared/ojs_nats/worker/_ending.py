"""The deadlines of a worker's end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Ending:
    """The deadlines of a worker's end, in seconds of its loop's clock: of its jobs, and of all that follows within
    `closing_s`.
    """

    def __init__(self, closing_s: float) -> None:
        self.jobs_by = 0.0
        self._closing_s = closing_s
        self._all_by = 0.0
        self.hurried = False
        """Whether the grace period was ended before its time."""
        self._bound: asyncio.Timeout | None = None

    def begin(self, now: float, grace_s: float) -> None:
        """Begin the grace period."""
        self._end_at(now + grace_s, now + grace_s + self._closing_s)

    def hurry(self, now: float) -> None:
        """End the grace period, and the second time everything else, too."""
        self._end_at(min(self.jobs_by, now), now if self.hurried else min(self._all_by, now + self._closing_s))
        self.hurried = True

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Everything in here ends by the deadline. Raises TimeoutError."""
        try:
            async with asyncio.timeout_at(self._all_by) as self._bound:
                yield
        finally:
            self._bound = None

    def _end_at(self, jobs_by: float, all_by: float) -> None:
        self.jobs_by, self._all_by = jobs_by, all_by
        if self._bound is not None and not self._bound.expired():
            self._bound.reschedule(all_by)
