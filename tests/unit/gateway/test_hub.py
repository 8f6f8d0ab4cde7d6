"""The hub of live events: nothing is lost or doubled between stream and tail, and a slow reader is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from ojs_gateway.hub import BUFFER, EventHub, Missed
from ojs_nats.events.reader import EventFilter, EventPage, EventReader, StoredEvent
from support.waiting import eventually

ALL = EventFilter()


class FakeReader:
    """The event stream as a list; `page` is how much one read brings."""

    def __init__(self, page: int = 3) -> None:
        self.events: list[StoredEvent] = []
        self.first = 1
        self.page = page
        self.more = asyncio.Event()

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

    async def first_sequence(self) -> int:
        await asyncio.sleep(0)
        return self.first

    async def read(self, after: int, _wanted: EventFilter, limit: int) -> EventPage:
        await asyncio.sleep(0)
        newer = [event for event in self.events if event.sequence > after]
        page = newer[: min(limit, self.page)]
        await asyncio.sleep(0)
        return EventPage(page, page[-1].sequence if page else after, has_more=len(newer) > len(page))

    async def follow(self, after: int, _wanted: EventFilter) -> AsyncIterator[StoredEvent]:
        while True:
            self.more.clear()
            for event in [event for event in self.events if event.sequence > after]:
                after = event.sequence
                yield event
            await self.more.wait()


def hub_of(reader: FakeReader) -> EventHub:
    return EventHub(cast("EventReader", reader))


async def drained(subscription: Any) -> list[int]:
    found = []
    while (event := await subscription.next(0.05)) is not None:
        found.append(event.sequence)
    return found


@given(st.lists(st.sampled_from(["store", "turn", "read"]), max_size=40), st.integers(1, 5))
def test_every_event_comes_once_and_in_order(steps: list[str], page: int) -> None:
    async def scenario() -> None:
        reader = FakeReader(page)
        reader.store(4)
        hub = hub_of(reader)
        subscription = await hub.subscribe(ALL, after=0)
        found: list[int] = []
        for step in steps:
            if step == "store":
                reader.store()
            elif step == "turn":
                await asyncio.sleep(0)
            elif isinstance(event := await subscription.next(0), StoredEvent):
                found.append(event.sequence)
        found += await drained(subscription)
        subscription.close()
        assert found == [event.sequence for event in reader.events]

    asyncio.run(scenario())


async def test_a_slow_reader_has_a_bounded_buffer_and_loses_nothing() -> None:
    reader = FakeReader(page=400)
    hub = hub_of(reader)
    subscription = await hub.subscribe(ALL)
    assert await subscription.next(0.01) is None  # live now
    reader.store(3 * BUFFER)
    await eventually(lambda: not reader.more.is_set())
    assert len(subscription._buffer) <= BUFFER
    assert await drained(subscription) == [event.sequence for event in reader.events]
    subscription.close()


async def test_what_left_the_stream_is_counted_once() -> None:
    reader = FakeReader()
    reader.store(10)
    reader.drop(6)
    hub = hub_of(reader)
    subscription = await hub.subscribe(ALL, after=2)
    assert await subscription.next(1) == Missed(4)
    assert await drained(subscription) == [7, 8, 9, 10]
    subscription.close()


async def test_the_tail_ends_with_its_last_subscriber() -> None:
    hub = hub_of(FakeReader())
    first, second = await hub.subscribe(ALL), await hub.subscribe(ALL)
    tail = hub._tail
    assert tail is not None
    first.close()
    assert hub._tail is tail
    second.close()
    await asyncio.wait([tail], timeout=5)
    assert tail.cancelled()
    assert hub._tail is None
