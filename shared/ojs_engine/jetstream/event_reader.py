"""Reading stored events: pages after a cursor or before the end for polling, and a tail for SSE and WebSocket; and hearing live
ones, which are stored nowhere.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ojs_engine.base.waiting import within
from ojs_engine.jetstream.connection import Connection, Reply
from ojs_engine.jetstream.contents import count, messages, sequence_of, stream_info, subject_of, unix_ms
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_link.timings import Timings

_READ_BYTES: Final = 4 * 1024 * 1024
_TWO_WORDS: Final = re.compile(r"[a-z_]+\.[a-z_]+", re.ASCII)


class EventReaderLimits(Timings, frozen=True, kw_only=True):
    """How much of the event stream is read for one page, and how often a tail reads."""

    read: int = 1_000
    """Events of one read."""
    reads: int = 10
    """Reads for one page; a rarer match is found by asking again with the page's cursor."""
    read_s: float = 5.0
    """How long its answer is waited for."""
    fallback_s: float = 1.0
    """How often a tail reads though no event was announced."""


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events are wanted; what is empty admits all, the members apply together.

    `types` may end in `.*` (`job.*`); `queues` are queue names, `subject_id` is the id that the event is about.
    """

    types: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    subject_id: str | None = None
    sees: Callable[[str, str | None], bool] | None = None
    """Whether whoever asks may see jobs of a type in a queue, or all of a queue; None if everything."""

    def admits(self, event: StoredEvent) -> bool:
        if not self.admits_type(event.type):
            return False
        if self.queues and event.queue not in self.queues:
            return False
        if self.subject_id is not None and event.subject_id != self.subject_id:
            return False
        if self.job_types and event.job_type not in self.job_types:
            return False
        return self.sees is None or event.is_seen(self.sees)

    def admits_type(self, event_type: str) -> bool:
        return not self.types or any(_matches(event_type, wanted) for wanted in self.types)

    def subject(self, config: StoreConfig) -> str:
        """Return the narrowest subject that covers all that is wanted."""
        narrow = len(self.types) == 1 and _TWO_WORDS.fullmatch(self.types[0]) is not None
        event_type = self.types[0] if narrow else "*.*"
        queue = self.queues[0].replace(".", "_") if len(self.queues) == 1 else "*"
        if (event_type, queue, self.subject_id) == ("*.*", "*", None):
            return config.events
        return f"{config.events.removesuffix('>')}{event_type}.{queue}.{self.subject_id or '*'}"

    @property
    def exact(self) -> bool:
        """Whether `subject` covers nothing else, so that the stream itself can count what is wanted."""
        types = not self.types or (len(self.types) == 1 and _TWO_WORDS.fullmatch(self.types[0]) is not None)
        return types and len(self.queues) <= 1 and not self.job_types and self.sees is None


class _Data(Struct):
    job_type: str | None = None
    queue: str | None = None


class _Body(Struct):
    data: _Data


_decode_body: Final = msgspec.json.Decoder(_Body).decode


class StoredEvent(NamedTuple):
    """One event: its sequence (the cursor after it), what its subject says, and its JSON. A live one has the sequence 0."""

    sequence: int
    type: str
    queue: str
    subject_id: str
    body: bytes

    @property
    def job_type(self) -> str | None:
        return _decode_body(self.body).data.job_type

    def is_seen(self, sees: Callable[[str, str | None], bool]) -> bool:
        """Whether it is about a job or a queue that somebody sees. What names no queue is about several, or about none."""
        try:
            data = _decode_body(self.body).data
        except msgspec.ValidationError:
            return False
        return data.queue is not None and sees(data.queue, data.job_type)

    @property
    def live(self) -> bool:
        """Whether it is stored nowhere."""
        return not self.sequence


class EventPage(NamedTuple):
    """Events, oldest first. `cursor` goes on after all that was looked at, matches or not."""

    events: list[StoredEvent]
    cursor: int
    has_more: bool


class NewestPage(NamedTuple):
    """Events, the newest first, and how many match altogether. `cursor` goes on with what comes after all of them."""

    events: list[StoredEvent]
    total: int
    cursor: int


class Kept(NamedTuple):
    """Sequences of the oldest event that is kept and of the last; if there is none, the first is above the last, or both are 0.

    `begun_at`: when the stream was made; `oldest_at`: when the oldest that is kept was stored, None if there is none (Unix ms).
    """

    first: int
    last: int
    begun_at: int = 0
    oldest_at: int | None = None


class EventReader:
    """Reads the event stream. `nats` carries pages of up to 4 MB, so it should be the store's `bulk`."""

    def __init__(self, nats: Connection, config: StoreConfig, limits: EventReaderLimits = EventReaderLimits()) -> None:
        self._limits = limits
        self._nats = nats
        self._config = config

    async def read(self, after: int, wanted: EventFilter, limit: int) -> EventPage:
        """Up to `limit` events with a sequence above `after` (0: from the oldest kept)."""
        found: list[StoredEvent] = []
        cursor = after
        stream = self._config.events_stream
        size = min(limit, self._limits.read) if wanted.exact else self._limits.read
        for _ in range(self._limits.reads):
            which = {"next_by_subj": wanted.subject(self._config), "seq": cursor + 1, "batch": size, "max_bytes": _READ_BYTES}
            batch, pending = await messages(self._nats, stream, which, "events", self._limits.read_s)
            for left, event in zip(range(len(batch) - 1, -1, -1), map(_read, batch), strict=True):
                cursor = event.sequence
                if wanted.admits(event):
                    found.append(event)
                    if len(found) == limit:
                        return EventPage(found, cursor, has_more=left + pending > 0)
            if not batch or not pending:
                return EventPage(found, cursor, has_more=False)
        return EventPage(found, cursor, has_more=True)

    async def newest(self, wanted: EventFilter, passed: int, limit: int) -> NewestPage:
        """Up to `limit` events that come before the `passed` newest; only for an `exact` filter, by which the stream counts.

        Where they begin is looked for by halves: a stream can't be read backwards.
        """
        kept = await self.kept()
        if kept.first > kept.last:
            return NewestPage([], 0, kept.last)
        low, high = kept.first, kept.last + 1
        total = await self._from(low, wanted)
        most = min(total, passed + limit)
        if most <= passed:
            return NewestPage([], total, kept.last)
        if total == high - low:  # nothing else lies between
            low, high = high - most, high - most
        while low < high - 1:
            middle = (low + high) // 2
            low, high = (middle, high) if await self._from(middle, wanted) >= most else (low, middle)
        page = await self.read(low - 1, wanted, most - passed)
        return NewestPage(page.events[::-1], total, kept.last)

    async def _from(self, sequence: int, wanted: EventFilter) -> int:
        """How many events there are that match, from a sequence on."""
        stream, before = self._config.events_stream, sequence - 1
        return await count(
            self._nats, stream, wanted.subject(self._config), "events", after=before, timeout_s=self._limits.read_s
        )

    async def last_sequence(self) -> int:
        """The cursor after everything stored now."""
        return (await self.kept()).last

    async def kept(self) -> Kept:
        """What the stream still has."""
        info = await stream_info(self._nats, self._config.events_stream)
        first, last = info.state.first_seq, info.state.last_seq
        return Kept(first, last, unix_ms(info.created), unix_ms(info.state.first_ts) if 0 < first <= last else None)

    async def listen(self, heard: Callable[[StoredEvent], None]) -> Callable[[], Awaitable[None]]:
        """Have live events handed over as they come, from now on. Returns the way to end it."""
        return await self._nats.listen(
            self._config.live_events, lambda found: heard(event_of(found.subject.decode(), 0, found.data))
        )

    async def follow(self, after: int, wanted: EventFilter) -> AsyncIterator[StoredEvent]:
        """Events above `after` as they come, without end; raises OjsError backend_unavailable when NATS is away.

        One tail per process with `EventFilter()`, each subscriber asking `admits`, is cheaper than a tail for each.
        """
        stored = asyncio.Event()
        stop = await self._nats.listen(self._config.events_stored, lambda _message: stored.set())
        try:
            while True:
                stored.clear()
                page = await self.read(after, wanted, self._limits.read)
                for event in page.events:
                    yield event
                after = page.cursor
                if not page.has_more:
                    # Not every event is announced: what needs no truth is published without the relay.
                    await within(self._limits.fallback_s, stored)
        finally:
            await stop()


def _read(message: Reply) -> StoredEvent:
    return event_of(subject_of(message), sequence_of(message), message.data)


def event_of(subject: str, sequence: int, body: bytes) -> StoredEvent:
    """The event that a message of the stream is, or a live one with the sequence 0."""
    event_type, scope, subject_id = subject.split(".", 2)[2].rsplit(".", 2)
    return StoredEvent(sequence, event_type, scope.replace("_", "."), subject_id, body)


def _matches(event_type: str, wanted: str) -> bool:
    return event_type.startswith(wanted[:-1]) if wanted.endswith("*") else event_type == wanted
