"""A record as the relay of events sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ojs_engine.domain.events.envelope import Event


class Numbered(Protocol):
    """An entry of a log."""

    @property
    def n(self) -> int:
        """Counts from 1, and goes on when the log is cut."""


class EventSource(Struct, frozen=True):
    """A record with a log, whose entries have events."""

    id: str
    """The last token of its events' subjects."""
    created_at: int
    """When this life began (Unix ms): ids may be used again."""
    scope: str
    entries: Sequence[Numbered]
    first: int
    """The number of the entry with which its life began, or of the first one that is kept; 0 if there is none.

    It is 1 unless the log was cut, or goes on from that of a deleted record with the same id.
    """
    events: Callable[[Any], list[Event]]
    """The events of one of its entries."""
    member_of: str | None = None
    """The id of another source that some of its events are about, too."""


def first_of(log: Sequence[Numbered]) -> int:
    """Return the number of the first entry of a log that begins with its record's life; 0 for none."""
    return log[0].n if log else 0
