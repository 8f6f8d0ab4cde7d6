"""Live events for many subscribers: one tail of the event stream per gateway, a bounded buffer for each subscriber.

A subscriber that reads too slowly loses its buffer, not its events: it reads on from the stream where it was. Only what the
stream itself has let go of is lost, and it is told how many that were.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, NamedTuple

import structlog

from ojs_nats.errors import OjsError
from ojs_nats.events.reader import EventFilter, EventReader, StoredEvent

__all__ = ["EventHub", "Missed", "Subscription"]

log = structlog.get_logger(__name__)

BUFFER: Final = 1_000
_PAGE: Final = 500
_RETRY_S: Final = 1.0
_ALL: Final = EventFilter()


class Missed(NamedTuple):
    """Events that left the stream before the subscriber could read them; up to `number`, since not all may have matched."""

    number: int


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

    async def next(self, timeout_s: float) -> StoredEvent | Missed | None:
        """The next event, what was missed, or None when nothing has come in time. Raises OjsError while NATS is away."""
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
                missed = await self._catch_up()
                if missed is not None:
                    return missed
                continue
            left = until - loop.time()
            if left <= 0:
                return None
            self._arrived.clear()
            try:
                async with asyncio.timeout(left):
                    await self._arrived.wait()
            except TimeoutError:
                return None

    def offer(self, event: StoredEvent) -> None:
        """Called by the hub for every event."""
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
        self._arrived.set()

    def close(self) -> None:
        self._hub.leave(self)

    async def _catch_up(self) -> Missed | None:
        """Read on from the stream; live again once nothing more is stored."""
        if not self._checked:
            self._checked = True
            first = await self._hub.reader.first_sequence()
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


class EventHub:
    """The subscribers of one gateway; the tail runs while there are any."""

    def __init__(self, reader: EventReader) -> None:
        self.reader = reader
        self._subscriptions: set[Subscription] = set()
        self._tail: asyncio.Task[None] | None = None

    async def subscribe(self, wanted: EventFilter, after: int | None = None) -> Subscription:
        """Events above the cursor `after` (0: all that are kept), or from about now on. Raises backend_unavailable."""
        cursor = await self.reader.last_sequence() if after is None else after
        subscription = Subscription(self, wanted, cursor)
        self._subscriptions.add(subscription)
        if self._tail is None:
            self._tail = asyncio.create_task(self._follow(), name="event-tail")
        return subscription

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        if not self._subscriptions and self._tail is not None:
            self._tail.cancel()
            self._tail = None

    async def _follow(self) -> None:
        cursor: int | None = None
        while True:
            try:
                if cursor is None:
                    cursor = await self.reader.last_sequence()
                    # Who subscribed before this point has read, or will read, up to it; from here on the tail brings it.
                    for subscription in self._subscriptions:
                        subscription.resume()
                async for event in self.reader.follow(cursor, _ALL):
                    cursor = event.sequence
                    for subscription in tuple(self._subscriptions):
                        subscription.offer(event)
            except OjsError as error:
                log.warning("live events wait", reason=error.message)
                await asyncio.sleep(_RETRY_S)
