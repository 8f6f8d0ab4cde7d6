"""Messages of a stream that aren't stored events (ojs-realtime §4)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ojs_engine.base.times import format_ms
from ojs_engine.domain.events.vocabulary import ENTERED
from ojs_engine.jetstream.event_reader import Kept, StoredEvent
from ojs_engine.wire.members import encode

STATE_CHANGED: Final = "job.state_changed"
"""Made of a stored event for those who follow a job, a queue or all; nowhere stored itself (docs/adr/007)."""

LIVE_TYPES: Final = ("job.checkpointed", "job.heartbeat", "job.progress", "worker.heartbeat")
"""Events that only those who follow hear, since they are stored nowhere. One more type is one more name here."""


class Message(NamedTuple):
    """One event as a stream tells it: its type, the id to go on after, and its data."""

    type: str
    id: str
    data: bytes


class StateChange(Struct, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """The data of `job.state_changed` (ojs-realtime §4.1)."""

    job_id: str
    queue: str
    type: str
    before: str
    after: str
    timestamp: str


class _Data(Struct):
    job_id: str = ""
    job_type: str = ""
    queue: str = ""
    state: str | None = None
    previous_state: str | None = None


class _Event(Struct):
    time: str
    data: _Data


class _Envelope(Struct):
    id: str
    time: str


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_decode_change: Final = msgspec.json.Decoder(StateChange).decode
_decode_job_event: Final = msgspec.json.Decoder(_Event).decode
_decode_event: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def state_change(event: StoredEvent) -> StateChange | None:
    """The change of state that an event tells, if it does. That a job is created, in whatever state, changes none."""
    entered = ENTERED.get(event.type)
    if entered is None:
        return None
    decoded = _decode_job_event(event.body)
    data = decoded.data
    if data.state != entered or data.previous_state in {None, data.state}:
        return None
    return StateChange(
        job_id=data.job_id,
        queue=data.queue,
        type=data.job_type,
        before=data.previous_state,
        after=data.state,
        timestamp=decoded.time,
    )


def time_of(message: Message) -> str:
    """When an event happened, as it says itself."""
    return _decode_change(message.data).timestamp if message.type == STATE_CHANGED else _decode_envelope(message.data).time


def lifted(body: bytes) -> bytes:
    """A live event with the members of its data beside it, and its time as `timestamp` (ojs-realtime §4.2, §4.3)."""
    event = _decode_event(body)
    return encode(_decode_event(event["data"]) | {"timestamp": event["time"]} | event)


def gap(channel: str, kept: Kept, missed: int | None, now: int) -> dict[str, Any]:
    """The data of `system.gap` (ojs-realtime §4.5).

    Nobody knows any more when the events happened that are gone: not before the stream began, nor after the oldest that it has.
    """
    data: dict[str, Any] = {
        "channel": channel,
        "gap_start": format_ms(kept.begun_at),
        "gap_end": format_ms(now if kept.oldest_at is None else kept.oldest_at),
    }
    return data if missed is None else data | {"estimated_missed_count": missed}


def dropped(channel: str, number: int, oldest: bytes, newest: bytes, now: int) -> dict[str, Any]:
    """The data of `system.events_dropped` (ojs-realtime §4.4); of the events, their bodies."""
    return {
        "channel": channel,
        "dropped_count": number,
        "oldest_dropped_id": _decode_envelope(oldest).id,
        "newest_dropped_id": _decode_envelope(newest).id,
        "timestamp": format_ms(now),
    }
