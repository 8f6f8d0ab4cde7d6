"""The hub of live events: nothing is lost or doubled between stream and tail, and a slow reader is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.event_reader import EventFilter, Kept, StoredEvent
from ojs_features.events.hub import BUFFER, LIVE_BUFFER, Dropped, HubReset, Missed, Subscription, _Index
from support.fake_events import FakeReader, hub_of
from support.waiting import eventually

ALL = EventFilter()


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


BEAT = StoredEvent(0, "job.heartbeat", "q", "id", b'{"id":"evt_1"}')


async def test_live_events_come_to_those_who_hear_them_and_want_them() -> None:
    reader = FakeReader()
    hub = hub_of(reader)
    hears, deaf = await hub.subscribe(ALL, hears=True), await hub.subscribe(ALL)
    other = await hub.subscribe(EventFilter(queues=("other",)), hears=True)
    reader.tell(BEAT)
    assert await hears.next(5) == BEAT
    assert [await subscription.next(0.05) for subscription in (deaf, other)] == [None, None]
    hears.close()
    other.close()
    await eventually(lambda: reader.heard is None)
    deaf.close()


async def test_what_is_stored_comes_ahead_of_live_events_where_both_wait() -> None:
    reader = FakeReader()
    reader.store(2)
    subscription = await hub_of(reader).subscribe(ALL, after=0, hears=True)
    reader.tell(BEAT)
    found = [await subscription.next(5) for _ in range(3)]
    assert [event.sequence for event in found if isinstance(event, StoredEvent)] == [1, 2, 0]
    subscription.close()


async def test_of_live_events_a_slow_reader_loses_the_oldest_and_is_told_how_many() -> None:
    reader = FakeReader()
    hub = hub_of(reader)
    subscription = await hub.subscribe(ALL, hears=True)
    beats = [StoredEvent(0, "job.heartbeat", "q", "id", b'{"id":"evt_%d"}' % number) for number in range(LIVE_BUFFER + 3)]
    for beat in beats:
        reader.tell(beat)
    await eventually(lambda: subscription._dropped is not None and subscription._dropped.number == 3)
    assert await subscription.next(1) == Dropped(3, beats[0], beats[2])
    assert [await subscription.next(1) for _ in range(LIVE_BUFFER)] == beats[3:]
    reader.store()  # those that are kept are not among them
    assert await drained(subscription) == [1]
    subscription.close()


async def test_a_gateway_listens_to_live_events_only_while_somebody_hears_them() -> None:
    reader = FakeReader()
    hub = hub_of(reader)
    subscription = await hub.subscribe(ALL)
    assert await subscription.next(0.05) is None
    assert hub._ears is None
    subscription.close()
    subscription.close()  # twice is once
    assert hub._hearing == 0


async def test_what_left_the_stream_is_counted_once() -> None:
    reader = FakeReader()
    reader.store(10)
    reader.drop(6)
    hub = hub_of(reader)
    subscription = await hub.subscribe(ALL, after=2)
    assert await subscription.next(1) == Missed(4, Kept(7, 10))
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


async def test_a_cursor_beyond_the_end_is_told_and_all_that_is_kept_follows() -> None:
    reader = FakeReader()
    reader.store(3)
    subscription = await hub_of(reader).subscribe(ALL, after=999)
    assert await subscription.next(1) == HubReset(Kept(1, 3))
    assert await drained(subscription) == [1, 2, 3]
    reader.store()
    assert await drained(subscription) == [4]
    subscription.close()


async def test_a_stream_that_begins_anew_is_told_to_those_who_follow_it() -> None:
    reader = FakeReader()
    reader.store(5)
    reader.fail = True
    hub = hub_of(reader)
    subscription = await hub.subscribe(ALL)
    assert await subscription.next(0.05) is None
    reader.events.clear()
    reader.store(2)  # the tail fails, and finds another stream
    assert await subscription.next(10) == HubReset(Kept(1, 2))
    assert await drained(subscription) == [1, 2]
    subscription.close()


async def test_there_are_no_more_subscriptions_than_there_may_be() -> None:
    hub = hub_of(FakeReader(), most=2)
    first, _second = await hub.subscribe(ALL), await hub.subscribe(ALL)
    with pytest.raises(OjsError) as refused:
        await hub.subscribe(ALL)
    assert (refused.value.code, refused.value.retry_after) == ("backend_unavailable", 10)
    first.close()
    third = await hub.subscribe(ALL)
    third.close()
    _second.close()


events = st.builds(
    StoredEvent,
    st.just(1),
    st.sampled_from(["job.enqueued", "job.completed", "cron.triggered"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from([b'{"data":{"job_type":"t"}}', b'{"data":{"job_type":"u"}}', b'{"data":{}}']),
)
some = st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True).map(tuple)
filters = st.builds(
    EventFilter,
    types=st.lists(st.sampled_from(["job.*", "*", "job.enqueued", "cron.triggered"]), max_size=2, unique=True).map(tuple),
    queues=some,
    job_types=st.lists(st.sampled_from(["t", "u"]), max_size=2, unique=True).map(tuple),
    subject_id=st.sampled_from([None, "x", "y"]),
)


@given(st.lists(filters, max_size=8), events)
def test_an_event_is_offered_once_to_all_that_admit_it_and_to_few_others(wanted: list[EventFilter], event: StoredEvent) -> None:
    index = _Index()
    subscriptions = [Subscription(hub_of(FakeReader()), one, 0) for one in wanted]
    for subscription in subscriptions:
        index.add(subscription)
    found = index.candidates(event)
    assert len(found) == len(set(found))
    assert {one for one in subscriptions if one.wanted.admits(event)} <= set(found)
    for one in found:
        assert one.wanted.subject_id in (None, event.subject_id)
    for subscription in subscriptions:
        index.discard(subscription)
    assert index.candidates(event) == []
    assert not index._by_key
    assert not index._of_job_types
