"""What happened."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened (docs/events.md). `subject` is the id of what it is about, `id` the same whenever it is told again.

    `cursor` is where to go on after it: `client.events(after=event.cursor)`. Those that were polled have theirs in `cursors` of
    their page.
    """

    id: str
    type: str
    time: datetime
    subject: str = ""
    source: str = ""
    data: dict[str, Any] = {}
    cursor: str = ""


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events, the oldest first. `cursor` leads to what comes after them, each of `cursors` to what comes after one of them."""

    events: list[Event]
    cursor: str
    cursors: list[str] = []
    has_more: bool
