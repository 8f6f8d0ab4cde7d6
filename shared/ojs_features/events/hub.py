"""Live events for many subscribers: one tail of the event stream per gateway, a bounded buffer for each subscriber.

A subscriber that reads too slowly loses its buffer, not its events: it reads on from the stream where it was. Only
what the stream itself has let go of is lost, and it is sent their number. Of live events, which no stream
keeps, it loses the oldest, and is sent their number, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, NamedTuple

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop
from ojs_engine.base.waiting import within
from ojs_engine.jetstream.event_reader import EventFilter, EventReader, Kept, StoredEvent

log = structlog.get_logger(__name__)

BUFFER: Final = 1_000
LIVE_BUFFER: Final = 500
_PAGE: Final = 500
_AT_ONCE: Final = 100
_FULL_RETRY_S: Final = 10
_ID: Final = "id"
_QUEUE: Final = "queue"
_JOB_TYPE: Final = "job_type"
_TYPE: Final = "type"
_ANY: Final = ("", "")
_ALL: Final = EventFilter()


class Missed(NamedTuple):
    """Events that left the stream before the subscriber could read them; up to `number`, since not all may have matched."""

    number: int
    kept: Kept


class HubReset(NamedTuple):
    """The cursor is beyond the last event: it is of a stream that is no more. What follows begins with the oldest event."""

    kept: Kept


class Dropped(NamedTuple):
    """Live events that a subscriber was too slow for: how many, the oldest and the newest."""

    number: int
    oldest: StoredEvent
    newest: StoredEvent


Found = StoredEvent | Missed | HubReset | Dropped


class Subscription:
    """One subscriber's events; `next` waits for them. Made by `EventHub.subscribe`, ended by `close`."""

    def __init__(self, hub: EventHub, wanted: EventFilter, cursor: int, *, hears: bool = False) -> None:
        self._hub = hub
        self.wanted = wanted
        self.hears = hears
        """Whether it wants live events, too."""
        self._cursor = cursor
        self._buffer: deque[StoredEvent] = deque()
        self._heard: deque[StoredEvent] = deque()
        self._dropped: Dropped | None = None
        self._arrived = asyncio.Event()
        self._live = False
        self._checked = False

    @property
    def cursor(self) -> int:
        """The sequence of the last stored event that it was given, or where it began."""
        return self._cursor

    async def next(self, timeout_s: float) -> Found | None:
        """The next event, what was missed or dropped, that all begins anew, or None when nothing has come in time.

        Raises OjsError while NATS is away.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while True:
            if self._buffer:
                event = self._buffer.popleft()
                if event.sequence <= self._cursor:
                    continue
                self._cursor = event.sequence
                return event
            if not self._live:
                gap = await self._catch_up()
                if gap is not None:
                    return gap
                continue
            if self._heard:
                return self._next_heard()
            left = until - loop.time()
            if left <= 0:
                return None
            self._arrived.clear()
            if not await within(left, self._arrived):
                return None

    def _next_heard(self) -> Found:
        """The next live event, or what was dropped ahead of it."""
        if self._dropped is not None:
            dropped, self._dropped = self._dropped, None
            return dropped
        return self._heard.popleft()

    def offer(self, event: StoredEvent) -> None:
        """Called by the hub for every stored event that may be wanted."""
        if not self._live or not self.wanted.admits(event):
            return
        if len(self._buffer) >= BUFFER:
            self._live = False
            self._checked = False
            self._buffer.clear()
        else:
            self._buffer.append(event)
        self._arrived.set()

    def hear(self, event: StoredEvent) -> None:
        """Called by the hub for every live event that may be wanted."""
        if not self.hears or not self.wanted.admits(event):
            return
        if len(self._heard) >= LIVE_BUFFER:
            gone, before = self._heard.popleft(), self._dropped
            self._dropped = Dropped(1, gone, gone) if before is None else Dropped(before.number + 1, before.oldest, gone)
        self._heard.append(event)
        self._arrived.set()

    def resume(self) -> None:
        """Read the stream once more before waiting: as the hub's tail begins, or where what was told last may not be all."""
        self._live = False
        self._checked = False
        self._arrived.set()

    def close(self) -> None:
        self._hub.leave(self)

    async def _catch_up(self) -> Missed | HubReset | None:
        """Read on from the stream; live again once nothing more is stored."""
        if not self._checked:
            kept = await self._hub.reader.kept()
            self._checked = True
            if self._cursor > kept.last:
                self._buffer.clear()
                self._cursor = max(kept.first - 1, 0)
                return HubReset(kept)
            if kept.first > self._cursor + 1 and self._cursor > 0:
                missed, self._cursor = Missed(kept.first - self._cursor - 1, kept), kept.first - 1
                return missed
        self._live = True  # first, so that nothing falls between the page and what comes live
        try:
            page = await self._hub.reader.read(self._cursor, self.wanted, _PAGE)
        except OjsError:
            self._live = False
            raise
        if page.has_more:
            self._live = False
            self._buffer.clear()
        newer = [event for event in self._buffer if not page.events or event.sequence > page.events[-1].sequence]
        self._buffer = deque([*page.events, *newer])
        return None


class _Index:
    """Subscriptions by what they want, so that an event costs nothing for those that want others."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], set[Subscription]] = {}
        self._of_job_types = 0

    def add(self, subscription: Subscription) -> None:
        for key in _keys(subscription.wanted):
            self._by_key.setdefault(key, set()).add(subscription)
            self._of_job_types += key[0] == _JOB_TYPE

    def discard(self, subscription: Subscription) -> None:
        for key in _keys(subscription.wanted):
            found = self._by_key.get(key)
            if found is not None and subscription in found:
                found.remove(subscription)
                self._of_job_types -= key[0] == _JOB_TYPE
                if not found:
                    del self._by_key[key]

    def candidates(self, event: StoredEvent) -> list[Subscription]:
        """Those that may want an event, each once: all of a subscription's keys are of one kind, of which an event has one."""
        keys = [(_ID, event.subject_id), (_QUEUE, event.queue), (_TYPE, event.type), _ANY]
        if self._of_job_types:  # it stands in the body
            keys.append((_JOB_TYPE, event.job_type or ""))
        return [subscription for key in keys for subscription in self._by_key.get(key, ())]


def _keys(wanted: EventFilter) -> list[tuple[str, str]]:
    """Where a subscription is found: by the narrowest thing that it asks for."""
    if wanted.subject_id is not None:
        return [(_ID, wanted.subject_id)]
    if wanted.queues:
        return [(_QUEUE, queue) for queue in wanted.queues]
    if wanted.job_types:
        return [(_JOB_TYPE, job_type) for job_type in wanted.job_types]
    if wanted.types and not any(event_type.endswith("*") for event_type in wanted.types):
        return [(_TYPE, event_type) for event_type in wanted.types]
    return [_ANY]


class EventHub:
    """The subscribers of one gateway, `most` at a time; the tail runs while there are any."""

    def __init__(self, reader: EventReader, most: int, listens_s: float) -> None:
        self.reader = reader
        self._listens_s = listens_s
        self._most = most
        self._subscriptions: set[Subscription] = set()
        self._index = _Index()
        self._tail: asyncio.Task[None] | None = None
        self._ears: asyncio.Task[None] | None = None
        self._listens = asyncio.Event()
        """Set while live events arrive."""
        self._hearing = 0
        """How many subscriptions want live events."""
        self._cursor: int | None = None
        """How far the tail has come."""

    async def subscribe(self, wanted: EventFilter, after: int | None = None, *, hears: bool = False) -> Subscription:
        """Events above the cursor `after` (0: all that are kept), or from about now on; if it `hears`, live ones, too.

        Raises backend_unavailable.
        """
        cursor = await self.reader.last_sequence() if after is None else after
        if len(self._subscriptions) >= self._most:
            message = f"this gateway has {self._most:,} subscriptions to events already, as many as it takes"
            raise OjsError("backend_unavailable", message, retry_after=_FULL_RETRY_S)
        subscription = Subscription(self, wanted, cursor, hears=hears)
        self._subscriptions.add(subscription)
        self._index.add(subscription)
        if self._tail is None:
            self._cursor = None
            self._tail = start_loop("event-tail", self._follow)
        self._hearing += hears
        if hears:
            if self._ears is None:
                self._ears = start_loop("event-ears", self._hear)
            try:
                await within(self._listens_s, self._listens)
            except BaseException:
                subscription.close()
                raise
        return subscription

    def leave(self, subscription: Subscription) -> None:
        if subscription not in self._subscriptions:
            return
        self._subscriptions.remove(subscription)
        self._index.discard(subscription)
        self._hearing -= subscription.hears
        if not self._hearing and self._ears is not None:
            self._ears.cancel()
            self._ears = None
            self._listens.clear()
        if not self._subscriptions and self._tail is not None:
            self._tail.cancel()
            self._tail = None

    async def _follow(self) -> None:
        last = await self.reader.last_sequence()
        if self._cursor is None or last < self._cursor:  # at first, or in another stream than before
            self._cursor = last
            # Who subscribed before this point has read, or will read, up to it; from here on the tail brings it.
            for subscription in self._subscriptions:
                subscription.resume()
        async for event in self.reader.follow(self._cursor, _ALL):
            self._cursor = event.sequence
            await self._offer(event)

    async def _hear(self) -> None:
        stop = await self.reader.listen(self._tell)
        try:
            await self.reader.kept()  # answered on the same connection, after the server has heard of the subscription
            self._listens.set()
            await asyncio.Event().wait()
        finally:
            await stop()

    def _tell(self, event: StoredEvent) -> None:
        for subscription in self._index.candidates(event):
            subscription.hear(event)

    async def _offer(self, event: StoredEvent) -> None:
        for number, subscription in enumerate(self._index.candidates(event)):
            if number % _AT_ONCE == _AT_ONCE - 1:  # those who got it write it now, and others have their turn
                await asyncio.sleep(0)
            subscription.offer(event)
