"""Reading stored events: pages after a cursor for polling, and a tail for SSE and WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ojs_core.base.waiting import within
from ojs_core.jetstream.connection import Connection, Reply
from ojs_core.jetstream.contents import messages, sequence_of, stream_info, subject_of
from ojs_core.jetstream.subjects import StoreConfig

_READ: Final = 1_000
_READ_BYTES: Final = 4 * 1024 * 1024
_READ_TIMEOUT_S: Final = 5.0
_READS: Final = 10
"""Reads for one page; a rarer match is found by asking again with the page's cursor."""
_FALLBACK_S: Final = 1.0


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events are wanted; what is empty admits all, the members apply together.

    `types` may end in `.*` (`job.*`); `queues` are queue names, `subject_id` is the id that the event is about.
    """

    types: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    subject_id: str | None = None

    def admits(self, event: StoredEvent) -> bool:
        if self.types and not any(_matches(event.type, wanted) for wanted in self.types):
            return False
        if self.queues and event.queue not in self.queues:
            return False
        if self.subject_id is not None and event.subject_id != self.subject_id:
            return False
        return not self.job_types or event.job_type in self.job_types

    @property
    def subject(self) -> str:
        """The narrowest subject that covers all that is wanted."""
        exact = len(self.types) == 1 and self.types[0].count(".") == 1 and "*" not in self.types[0]
        event_type = self.types[0] if exact else "*.*"
        queue = self.queues[0].replace(".", "_") if len(self.queues) == 1 else "*"
        if (event_type, queue, self.subject_id) == ("*.*", "*", None):
            return "ojs.events.>"
        return f"ojs.events.{event_type}.{queue}.{self.subject_id or '*'}"


class _Data(Struct):
    job_type: str | None = None


class _Body(Struct):
    data: _Data


_decode_body: Final = msgspec.json.Decoder(_Body).decode


class StoredEvent(NamedTuple):
    """One event of the stream: its sequence (the cursor after it), what its subject says, and its JSON."""

    sequence: int
    type: str
    queue: str
    subject_id: str
    body: bytes

    @property
    def job_type(self) -> str | None:
        return _decode_body(self.body).data.job_type


class EventPage(NamedTuple):
    """Events, oldest first. `cursor` goes on after all that was looked at, matches or not."""

    events: list[StoredEvent]
    cursor: int
    has_more: bool


class EventReader:
    """Reads the event stream. `nats` carries pages of up to 4 MB, so it should be the store's `bulk`."""

    def __init__(self, nats: Connection, config: StoreConfig) -> None:
        self._nats = nats
        self._config = config

    async def read(self, after: int, wanted: EventFilter, limit: int) -> EventPage:
        """Up to `limit` events with a sequence above `after` (0: from the oldest kept)."""
        found: list[StoredEvent] = []
        cursor = after
        for _ in range(_READS):
            which = {"next_by_subj": wanted.subject, "seq": cursor + 1, "batch": _READ, "max_bytes": _READ_BYTES}
            batch, pending = await messages(self._nats, self._config.events_stream, which, "events", _READ_TIMEOUT_S)
            for left, event in zip(range(len(batch) - 1, -1, -1), map(_event, batch), strict=True):
                cursor = event.sequence
                if wanted.admits(event):
                    found.append(event)
                    if len(found) == limit:
                        return EventPage(found, cursor, has_more=left + pending > 0)
            if not batch or not pending:
                return EventPage(found, cursor, has_more=False)
        return EventPage(found, cursor, has_more=True)

    async def last_sequence(self) -> int:
        """The cursor after everything stored now."""
        return (await self.kept())[1]

    async def kept(self) -> tuple[int, int]:
        """The sequences of the oldest event that is kept and of the last; if there is none, the first is above the last."""
        state = (await stream_info(self._nats, self._config.events_stream)).state
        return state.first_seq, state.last_seq

    async def follow(self, after: int, wanted: EventFilter) -> AsyncIterator[StoredEvent]:
        """Events above `after` as they come, without end; raises OjsError backend_unavailable when NATS is away.

        One tail per process with `EventFilter()`, each subscriber asking `admits`, is cheaper than a tail for each.
        """
        stored = asyncio.Event()
        stop = await self._nats.listen(self._config.events_stored, lambda _message: stored.set())
        try:
            while True:
                stored.clear()
                page = await self.read(after, wanted, _READ)
                for event in page.events:
                    yield event
                after = page.cursor
                if not page.has_more:
                    # Not every event is announced: what needs no truth is published without the relay.
                    await within(_FALLBACK_S, stored)
        finally:
            await stop()


def _event(message: Reply) -> StoredEvent:
    event_type, scope, subject_id = subject_of(message).removeprefix("ojs.events.").rsplit(".", 2)
    return StoredEvent(sequence_of(message), event_type, scope.replace("_", "."), subject_id, message.data)


def _matches(event_type: str, wanted: str) -> bool:
    return event_type.startswith(wanted[:-1]) if wanted.endswith("*") else event_type == wanted
