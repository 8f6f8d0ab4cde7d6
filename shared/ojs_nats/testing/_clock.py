"""The time of a test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ojs_nats._durations import Duration, milliseconds, moment


class Clock:
    """Goes with the machine's time until it is frozen. Handlers don't see it: what they ask is the machine's."""

    def __init__(self, moved: Callable[[], None]) -> None:
        self._moved = moved
        self._ahead = timedelta()
        self._frozen: datetime | None = None

    def now(self) -> datetime:
        """In UTC."""
        return (self._frozen or datetime.now(UTC)) + self._ahead

    def freeze(self, at: datetime | None = None) -> None:
        """Stand still, then or now. Raises ValueError for a time without a zone."""
        if at is not None:
            moment(at, "at")
        self._frozen = at.astimezone(UTC) if at is not None else self.now()
        self._ahead = timedelta()
        self._moved()

    def advance(self, by: Duration) -> None:
        """What is due by then is available now: jobs that were scheduled, and those to be tried again."""
        self._ahead += timedelta(milliseconds=milliseconds(by))
        self._moved()
