"""Events of jobs, queues, workers and workflows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = ["Event", "EventPage"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event (docs/events.md).

    Attributes:
        id: The id. An event that comes twice has the same.
        subject: The id of the job, or of what else it is about.
        cursor: Where to go on after it: `client.events(after=event.cursor)`. "" in a page, which has `cursors`.
    """

    id: str
    type: str
    time: datetime
    subject: str = ""
    source: str = ""
    data: dict[str, Any] = {}
    cursor: str = ""


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events, the oldest first.

    Attributes:
        cursor: The cursor behind the page.
        cursors: The cursor behind each event.
    """

    events: list[Event]
    cursor: str
    cursors: list[str] = []
    has_more: bool
