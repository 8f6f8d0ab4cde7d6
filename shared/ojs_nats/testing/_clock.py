"""The clock of a test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ojs_nats._durations import Duration, milliseconds, moment


class Clock:
    """The time that jobs of a test wait by. It goes with the machine's clock until it is frozen. Handlers still see the
    machine's clock.
    """

    def __init__(self, moved: Callable[[], None]) -> None:
        self._moved = moved
        self._ahead = timedelta()
        self._frozen: datetime | None = None

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return (self._frozen or datetime.now(UTC)) + self._ahead

    def freeze(self, at: datetime | None = None) -> None:
        """Stop the clock.

        Args:
            at: The time to stop at, with a time zone. None means now.

        Raises:
            ValueError: The time has no time zone.
        """
        if at is not None:
            moment(at, "at")
        self._frozen = at.astimezone(UTC) if at is not None else self.now()
        self._ahead = timedelta()
        self._moved()

    def advance(self, by: Duration) -> None:
        """Move the clock on. Jobs that are due by then become available, scheduled ones and those to be tried again.

        Args:
            by: How far, in seconds or as `"1h"`.
        """
        self._ahead += timedelta(milliseconds=milliseconds(by))
        self._moved()
