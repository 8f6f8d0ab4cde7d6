"""Live events for many subscribers: one tail of the event stream per gateway, a bounded buffer for each subscriber.

A subscriber that reads too slowly loses its buffer, not its events: it reads on from the stream where it was. Only what the
stream itself has let go of is lost, and it is told how many that were.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, NamedTuple

import structlog

from ojs_core.base.errors import OjsError
from ojs_core.base.loops import start_loop
from ojs_core.base.waiting import within
from ojs_core.jetstream.event_reader import EventFilter, EventReader, StoredEvent

log = structlog.get_logger(__name__)

BUFFER: Final = 1_000
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


class HubReset(NamedTuple):
    """The cursor is beyond the `last` event: it is of a stream that is no more. What follows begins with the oldest event."""

    last: int


class Subscription:
    """One subscriber's events; `next` waits for them. Made by `EventHub.subscribe`, ended by `close`."""

    def __init__(self, hub: EventHub, wanted: EventFilter, cursor: int) -> None:
        self._hub = hub
        self.wanted = wanted
        self._cursor = cursor
        self._buffer: deque[StoredEvent] = deque()
        self._arrived = asyncio.Event()
        self._live = False
        self._checked = False

    async def next(self, timeout_s: float) -> StoredEvent | Missed | HubReset | None:
        """The next event, what was missed, that all begins anew, or None when nothing has come in time.

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
            left = until - loop.time()
            if left <= 0:
                return None
            self._arrived.clear()
            if not await within(left, self._arrived):
                return None

    def offer(self, event: StoredEvent) -> None:
        """Called by the hub for every event that may be wanted."""
        if not self._live or not self.wanted.admits(event):
            return
        if len(self._buffer) >= BUFFER:
            self._live = False
            self._checked = False
            self._buffer.clear()
        else:
            self._buffer.append(event)
        self._arrived.set()

    def resume(self) -> None:
        """Called by the hub when its tail has begun: what was stored before that has to be read."""
        self._live = False
        self._checked = False
        self._arrived.set()

    def close(self) -> None:
        self._hub.leave(self)

    async def _catch_up(self) -> Missed | HubReset | None:
        """Read on from the stream; live again once nothing more is stored."""
        if not self._checked:
            first, last = await self._hub.reader.kept()
            self._checked = True
            if self._cursor > last:
                self._buffer.clear()
                self._cursor = first - 1
                return HubReset(last)
            if first > self._cursor + 1 and self._cursor > 0:
                missed, self._cursor = Missed(first - self._cursor - 1), first - 1
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

    def __init__(self, reader: EventReader, most: int) -> None:
        self.reader = reader
        self._most = most
        self._subscriptions: set[Subscription] = set()
        self._index = _Index()
        self._tail: asyncio.Task[None] | None = None
        self._cursor: int | None = None
        """How far the tail has come."""

    async def subscribe(self, wanted: EventFilter, after: int | None = None) -> Subscription:
        """Events above the cursor `after` (0: all that are kept), or from about now on. Raises backend_unavailable."""
        cursor = await self.reader.last_sequence() if after is None else after
        if len(self._subscriptions) >= self._most:
            message = f"this gateway has {self._most:,} subscriptions to events already, as many as it takes"
            raise OjsError("backend_unavailable", message, retry_after=_FULL_RETRY_S)
        subscription = Subscription(self, wanted, cursor)
        self._subscriptions.add(subscription)
        self._index.add(subscription)
        if self._tail is None:
            self._cursor = None
            self._tail = start_loop("event-tail", self._follow)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        self._index.discard(subscription)
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
            for number, subscription in enumerate(self._index.candidates(event)):
                if number % _AT_ONCE == _AT_ONCE - 1:  # those who got it write it now, and others have their turn
                    await asyncio.sleep(0)
                subscription.offer(event)
