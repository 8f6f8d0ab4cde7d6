"""What is stored, read from beginning to end: the plain way to find out what everything derived must say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ojs_engine.base.errors import unavailable
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.api import parse_ack
from ojs_engine.jetstream.connection import Failed
from ojs_engine.jetstream.event_reader import EventFilter, EventReader, StoredEvent
from ojs_engine.jetstream.feed import Feed
from ojs_engine.store.records.records import job_reader
from ojs_engine.store.store import Store
from support.events import all_events_of
from support.waiting import answered

_PAGE: Final = 2_000


class _Id(Struct):
    id: str


_decode_id: Final = msgspec.json.Decoder(_Id).decode


async def all_jobs(store: Store) -> list[Job]:
    """Every job in the bucket, tombstones left out, as of now or later."""
    end = await answered(_mark, store)
    nats = await store.connect("read-all")
    feed = Feed(nats, store.config, f"all-{store.instance}")
    jobs: dict[str, Job] = {}
    seen = 0
    try:
        while seen < end:
            for record in (await answered(feed.next, 0.5)).records:  # after a loss it goes on where it was
                seen = record.sequence
                if record.kind == "job":
                    jobs[record.job_id] = job_reader.decode(record.job_id, record.data)
                elif record.kind == "gone":
                    jobs.pop(record.job_id, None)
    finally:
        feed.close()
        await nats.close()
    return [job for job in jobs.values() if not job.deleted]


async def _mark(store: Store) -> int:
    """The sequence of a record that is stored now. Raises OjsError backend_unavailable."""
    answer = await store.nats.request(store.config.record("barrier", "truth"), b"", "Nats-TTL: 60s\r\n")
    if isinstance(answer, Failed):
        raise unavailable(answer.reason)
    return parse_ack(answer.data).seq


def counts_of(jobs: Iterable[Job]) -> dict[str, dict[str, int]]:
    """Numbers by queue and state."""
    numbers = Counter((job.queue, job.state) for job in jobs)
    return {queue: {state: numbers[queue, state] for state in State} for queue in {queue for queue, _ in numbers}}


async def all_events(store: Store) -> list[StoredEvent]:
    """Every event of the stream, as of now or later."""
    reader = EventReader(store.bulk, store.config)
    last = await answered(reader.last_sequence)
    found: list[StoredEvent] = []
    cursor = 0
    # A page may come from a server that is a little behind the leader; a reset takes all away.
    while cursor < last and (await answered(reader.kept))[0] <= last:
        page = await answered(reader.read, cursor, EventFilter(), _PAGE)
        found += page.events
        cursor = page.cursor
    return found


def missing_events(jobs: Iterable[Job], events: Sequence[StoredEvent]) -> list[str]:
    """What is wrong with the events of jobs: each transition's must be there at least once, and the first ones in order."""
    told = by_job(events)
    wrong = []
    for job in jobs:
        expected = {event.id: event.type for entry in job.transitions for event in all_events_of(job, entry)}
        found = told.pop(job.id, {})
        if list(found) != list(expected):
            wrong.append(f"{job.id}: {list(found.values())} instead of {list(expected.values())}")
    return wrong + [f"{job_id}: {list(found.values())} of a job that is not there" for job_id, found in told.items()]


def by_job(events: Sequence[StoredEvent]) -> dict[str, dict[str, str]]:
    """The events of each job, id to type, in the order in which they first came."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for event in events:
        found[event.subject_id].setdefault(_decode_id(event.body).id, event.type)
    return found
