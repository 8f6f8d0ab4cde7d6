from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from integration.samples import put_raw
from ojs_engine.jetstream.event_reader import EventFilter, EventReader, EventReaderLimits, StoredEvent
from ojs_engine.store.announce import announce, tell
from ojs_engine.store.store import Store
from support.waiting import eventually

pytestmark = pytest.mark.usefixtures("own_namespace")
"""Each test has streams that begin with sequence 1."""


@pytest.fixture
def reader(store: Store) -> EventReader:
    return EventReader(store.bulk, store.config)


async def put(store: Store, event_type: str, queue: str, subject_id: str, job_type: str = "t") -> int:
    body = b'{"data":{"job_type":"%s"}}' % job_type.encode()
    return await put_raw(store, store.config.event(event_type, queue, subject_id), body)


async def some(store: Store) -> None:
    await put(store, "job.enqueued", "a", "1")
    await put(store, "job.enqueued", "b.c", "2", "u")
    await put(store, "job.started", "a", "1")
    await put(store, "job.heartbeat", "a", "1")
    await put(store, "dead_letter.added", "b.c", "2", "u")


def shown(events: Sequence[StoredEvent]) -> list[tuple[int, str, str, str]]:
    return [(event.sequence, event.type, event.queue, event.subject_id) for event in events]


async def test_events_say_what_their_subjects_say(store: Store, reader: EventReader) -> None:
    await some(store)
    page = await reader.read(0, EventFilter(), 10)
    assert shown(page.events) == [
        (1, "job.enqueued", "a", "1"),
        (2, "job.enqueued", "b.c", "2"),
        (3, "job.started", "a", "1"),
        (4, "job.heartbeat", "a", "1"),
        (5, "dead_letter.added", "b.c", "2"),
    ]
    assert (page.cursor, page.has_more) == (5, False)
    assert await reader.last_sequence() == 5


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (EventFilter(types=("job.enqueued",)), [1, 2]),
        (EventFilter(types=("job.*",)), [1, 2, 3, 4]),
        (EventFilter(types=("job.started", "dead_letter.*")), [3, 5]),
        (EventFilter(types=("job.start",)), []),
        (EventFilter(types=("*",)), [1, 2, 3, 4, 5]),
        (EventFilter(queues=("b.c",)), [2, 5]),
        (EventFilter(queues=("a", "b.c")), [1, 2, 3, 4, 5]),
        (EventFilter(job_types=("u",)), [2, 5]),
        (EventFilter(subject_id="1"), [1, 3, 4]),
        (EventFilter(subject_id="1", types=("job.heartbeat",)), [4]),
        (EventFilter(types=("job.*",), queues=("b.c",), job_types=("u",)), [2]),
        (EventFilter(queues=("nowhere",)), []),
    ],
)
async def test_only_what_is_wanted_is_read(store: Store, reader: EventReader, wanted: EventFilter, expected: list[int]) -> None:
    await some(store)
    assert [event.sequence for event in (await reader.read(0, wanted, 10)).events] == expected


async def test_pages_go_on_at_their_cursor(store: Store, reader: EventReader) -> None:
    await some(store)
    found, cursor, more = [], 0, True
    while more:
        page = await reader.read(cursor, EventFilter(types=("job.*",)), 2)
        found += [event.sequence for event in page.events]
        cursor, more = page.cursor, page.has_more
    assert found == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wanted", "newest"),
    [
        (EventFilter(), [5, 4, 3, 2, 1]),
        (EventFilter(types=("job.enqueued",)), [2, 1]),
        (EventFilter(queues=("b.c",)), [5, 2]),
        (EventFilter(types=("job.heartbeat",), queues=("a",)), [4]),
        (EventFilter(queues=("nowhere",)), []),
    ],
)
async def test_the_newest_are_read_from_the_end(
    store: Store, reader: EventReader, wanted: EventFilter, newest: list[int]
) -> None:
    await some(store)
    for passed in range(len(newest) + 2):
        for limit in (1, 2, 10):
            page = await reader.newest(wanted, passed, limit)
            assert [event.sequence for event in page.events] == newest[passed : passed + limit]
            assert (page.total, page.cursor) == (len(newest), 5)


async def test_the_newest_of_nothing_are_none(reader: EventReader) -> None:
    assert await reader.newest(EventFilter(), 0, 10) == ([], 0, 0)


@pytest.mark.parametrize(
    ("wanted", "exact"),
    [
        (EventFilter(), True),
        (EventFilter(types=("job.enqueued",), queues=("a",), subject_id="1"), True),
        (EventFilter(types=("job.*",)), False),
        (EventFilter(types=("job.enqueued", "job.started")), False),
        (EventFilter(types=("bulk.cancel.completed",)), False),
        (EventFilter(queues=("a", "b")), False),
        (EventFilter(job_types=("t",)), False),
    ],
)
def test_the_stream_counts_what_one_subject_covers(wanted: EventFilter, exact: bool) -> None:
    assert wanted.exact is exact


async def test_what_is_kept_says_since_when(store: Store, reader: EventReader) -> None:
    empty = await reader.kept()
    assert (empty.first, empty.last, empty.oldest_at) == (0, 0, None)
    await some(store)
    kept = await reader.kept()
    assert (kept.first, kept.last) == (1, 5)
    assert kept.oldest_at is not None
    assert 0 < kept.begun_at <= kept.oldest_at


async def test_live_events_are_heard_with_what_their_subjects_say(store: Store, reader: EventReader) -> None:
    heard: list[StoredEvent] = []
    stop = await reader.listen(heard.append)
    await reader.kept()  # what is told on another connection may be faster than the subscription
    await announce(store, "worker.started", scope="worker", subject="w", data={})
    tell(store, "job.heartbeat", scope="b.c", subject="1", data={"job_type": "t"})
    await eventually(lambda: len(heard) == 1)
    assert shown(heard) == [(0, "job.heartbeat", "b.c", "1")]
    assert (heard[0].live, heard[0].job_type) == (True, "t")
    await stop()


async def test_a_cursor_moves_on_past_what_does_not_match(store: Store) -> None:
    reader = EventReader(store.bulk, store.config, EventReaderLimits(read=2, reads=2))
    await some(store)
    first = await reader.read(0, EventFilter(job_types=("v",)), 2)
    assert (first.events, first.cursor, first.has_more) == ([], 4, True)
    rest = await reader.read(first.cursor, EventFilter(job_types=("v",)), 2)
    assert (rest.events, rest.cursor, rest.has_more) == ([], 5, False)


async def test_an_empty_stream_is_an_empty_page(reader: EventReader) -> None:
    assert await reader.read(0, EventFilter(), 10) == ([], 0, False)
    assert await reader.read(7, EventFilter(), 10) == ([], 7, False)


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "announced by nobody"])
async def test_a_tail_gets_what_comes(store: Store, announced: bool) -> None:
    """One that looks by itself only after an hour has what it finds from an announcement."""
    reader = EventReader(store.bulk, store.config, EventReaderLimits(fallback_s=3_600.0 if announced else 0.05))
    await some(store)
    found: list[int] = []

    async def follow() -> None:
        tail = reader.follow(2, EventFilter(types=("job.*",)))
        while True:
            found.append((await anext(tail)).sequence)

    following = asyncio.create_task(follow())
    await eventually(lambda: found == [3, 4])
    for number, event_type in ((6, "job.completed"), (7, "job.heartbeat")):
        await put(store, event_type, "a", "1")
        if announced:
            store.nats.publish(store.config.events_stored, b"")
        await eventually(lambda expected=number: found[-1] == expected)  # type: ignore[misc]
    assert found == [3, 4, 6, 7]
    following.cancel()
    await asyncio.wait([following])
