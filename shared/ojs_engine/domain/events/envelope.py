"""The OJS event envelope (ojs-events §2)."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct

from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Entry
from ojs_engine.domain.past import Logged

SOURCE: Final = "ojs://ojs-nats/projector/events"
"""The same for every replica: an event that is published again must be recognised by source and id."""

_NO_META: Final = len(b"{}")


class Event(Struct, frozen=True, kw_only=True):
    """What has happened, as it is stored and sent.

    Values of `data` may be raw JSON.
    """

    specversion: str = "1.0"
    id: str
    type: Annotated[str, Meta(examples=["job.completed"])]
    source: str = SOURCE
    time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    subject: str
    datacontenttype: str = "application/json"
    data: dict[str, Any]


class _TraceContext(Struct):
    trace_id: str | None = None
    traceparent: str | None = None


_decode_trace: Final = msgspec.json.Decoder(_TraceContext).decode


def job_event(one: Logged, event_type: str, **members: Any) -> Event:
    """Return an event of one job; `data` gets the members that all of them have.

    `state` is the job's once the entry was written, `previous_state` the one before: each is left out where there was none.
    """
    job, entry = one.job, one.entry
    data: dict[str, Any] = {"job_id": job.id, "job_type": job.type, "queue": job.queue}
    if entry.after is not None:
        data["state"] = entry.after
    if entry.before is not None:
        data["previous_state"] = entry.before
    data |= members
    trace = trace_id(job.meta)
    if trace is not None:
        data["trace_id"] = trace
    return Event(
        id=event_id(job.id, entry, event_type),
        type=event_type,
        time=format_ms(entry.at),
        subject=job.id,
        data=data,
    )


def event_id(job_id: str, entry: Entry, event_type: str) -> str:
    """`evt_` and a UUIDv7 made of the entry's time and a hash of job, transition and type, so that it never changes.

    The entry's op tells apart two jobs that had the same id one after the other.
    """
    digest = hashlib.blake2b(f"{job_id} {entry.n} {entry.op} {event_type}".encode(), digest_size=10).digest()
    random, at = int.from_bytes(digest), entry.at
    # Each part by itself: one number of 128 bits costs half as much again.
    tail = f"{0x8000 | random >> 48 & 0x3FFF:04x}-{random & 0xFFFF_FFFF_FFFF:012x}"
    return f"evt_{at >> 16 & 0xFFFF_FFFF:08x}-{at & 0xFFFF:04x}-7{random >> 62 & 0xFFF:03x}-{tail}"


def trace_id(meta: Raw) -> str | None:
    """The trace that a job belongs to, by its meta: `trace_id`, else that of the W3C `traceparent` (ojs-events §8.2)."""
    if len(meta) <= _NO_META:
        return None
    try:
        context = _decode_trace(meta)
    except msgspec.DecodeError:
        return None
    if context.trace_id:
        return context.trace_id
    parts = (context.traceparent or "").split("-")
    return parts[1] if len(parts) >= 4 else None
