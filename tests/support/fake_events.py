"""The event stream without NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

from ojs_engine.base.errors import unavailable
from ojs_engine.jetstream.event_reader import EventFilter, EventPage, EventReader, Kept, StoredEvent
from ojs_features.events.hub import EventHub


class FakeReader:
    """The event stream as a list; `page` is how much one read brings."""

    def __init__(self, page: int = 3) -> None:
        self.events: list[StoredEvent] = []
        self.first = 1
        self.page = page
        self.more = asyncio.Event()
        self.fail = False
        """Whether the tail breaks off once, when more is stored."""
        self.heard: Callable[[StoredEvent], None] | None = None

    def store(self, number: int = 1) -> None:
        for _ in range(number):
            sequence = self.events[-1].sequence + 1 if self.events else 1
            self.events.append(StoredEvent(sequence, "job.enqueued", "q", "id", b"{}"))
        self.more.set()

    def drop(self, number: int) -> None:
        del self.events[:number]
        self.first += number

    async def last_sequence(self) -> int:
        await asyncio.sleep(0)
        return self.events[-1].sequence if self.events else 0

    async def kept(self) -> Kept:
        await asyncio.sleep(0)
        return Kept(self.first, self.events[-1].sequence if self.events else self.first - 1)

    async def read(self, after: int, _wanted: EventFilter, limit: int) -> EventPage:
        await asyncio.sleep(0)
        newer = [event for event in self.events if event.sequence > after]
        page = newer[: min(limit, self.page)]
        await asyncio.sleep(0)
        return EventPage(page, page[-1].sequence if page else after, has_more=len(newer) > len(page))

    async def listen(self, heard: Callable[[StoredEvent], None]) -> Callable[[], Awaitable[None]]:
        self.heard = heard

        async def stop() -> None:
            self.heard = None

        return stop

    def tell(self, event: StoredEvent) -> None:
        assert self.heard is not None
        self.heard(event)

    async def follow(self, after: int, _wanted: EventFilter) -> AsyncIterator[StoredEvent]:
        while True:
            self.more.clear()
            for event in [event for event in self.events if event.sequence > after]:
                after = event.sequence
                yield event
            await self.more.wait()
            if self.fail:
                self.fail = False
                raise unavailable("NATS is away")


def hub_of(reader: FakeReader, most: int = 100) -> EventHub:
    return EventHub(cast("EventReader", reader), most, 2.0)
