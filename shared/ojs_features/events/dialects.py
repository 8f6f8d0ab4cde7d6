"""Events for official clients. They are stored as JSON, and what a client reads besides is put beside that."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from ojs_api.events import EventPage
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import encode, members, written
from ojs_engine.wire.redaction import redacted
from ojs_features.events.answers import STATE_CHANGED, Message

_decode: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_SECOND: Final[dict[Reader, dict[str, str]]] = {
    "sdk": {"event": "type", "timestamp": "time"},
    "cli": {"event": "type"},
    "ui": {"timestamp": "time"},
}
_LIFTED: Final = ("job_id", "queue")
"""Members of `data` that the command line reads beside it."""


def event_body(stored: bytes, reader: Reader) -> bytes:
    """A stored event as its reader gets it: polled, as a server-sent event, or over a WebSocket."""
    if reader == "standard":
        return stored
    event = _decode(stored)
    more = {name: event[own] for name, own in _SECOND[reader].items()}
    if reader == "cli":
        data = _decode(event["data"])
        more |= {name: data[name] for name in _LIFTED if name in data}
    return encode(more | event)


def message_body(message: Message, reader: Reader, *, hides: bool = False) -> bytes:
    """The data of an event on a stream; that of a change of state is no event of its own, and the same for all.

    `hides` leaves out what jobs carry.
    """
    if message.type == STATE_CHANGED:
        return message.data
    body = event_body(message.data, reader)
    return redacted(body) if hides else body


def _page_for_ui(answer: EventPage) -> dict[str, Any]:
    events = [Raw(event_body(event, "ui")) for event in written(answer.events)]
    return members(answer) | {"events": events, "items": events}


SHAPES: Final[Shapes] = {EventPage: {"ui": _page_for_ui}}
