"""When a stream of a job ends, and what it tells before: the hub is real, the event stream and the store are not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from ojs_engine.base.errors import not_found, unavailable
from ojs_engine.domain.events.vocabulary import events_of
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.event_reader import EventReader, StoredEvent
from ojs_engine.wire.members import encode
from ojs_features.context import HandlerContext
from ojs_features.events.channels import channel_of
from ojs_features.events.following import Following
from ojs_features.events.hub import Dropped, HubReset, Missed
from ojs_features.events.stream import ChannelStream
from ojs_features.events.timings import SubscriptionTimings
from support.call import Request
from support.fake_events import FakeReader
from support.waiting import eventually
from unit.domain.transitions.samples import active, available, completed

JOB = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


class Answer:
    """What is written to a client."""

    def __init__(self) -> None:
        self.body = b""

    @property
    def types(self) -> list[str]:
        return [line[7:] for line in self.body.decode().splitlines() if line.startswith("event: ")]


class World:
    """A gateway's context with one job, or none, and a stream of events."""

    def __init__(self, keep_alive_s: float) -> None:
        self.job: Job | None = None
        self.relaying = True
        self.reader = FakeReader(page=1)
        self.answer = Answer()
        jobs = SimpleNamespace(get=self._get)
        store = SimpleNamespace(jobs=jobs, clock=SimpleNamespace(now=lambda: 0))
        queries = SimpleNamespace(until_relayed=self._until_relayed)
        self.context = cast(
            "HandlerContext",
            SimpleNamespace(
                store=store,
                queries=queries,
                setting=lambda _option: 10,
                keep_alive_s=keep_alive_s,
            ),
        )
        self.following = Following(self.context, cast("EventReader", self.reader), SubscriptionTimings())

    async def _get(self, job_id: str) -> Job:
        if self.job is None:
            raise not_found("job", job_id)
        return self.job

    async def _until_relayed(self) -> None:
        if not self.relaying:
            raise unavailable("there is no projector")

    def store(self, job: Job) -> None:
        """Have the events of a job's last transition in the stream."""
        for event in events_of(job, job.transitions[-1]):
            sequence = len(self.reader.events) + 1
            self.reader.events.append(StoredEvent(sequence, event.type, job.queue, job.id, encode(event)))
        self.reader.more.set()

    async def follow(self, *, after: int | None = None, types: str = "") -> None:
        """Write a stream of the job to its end."""
        followed = await self.following.open(channel_of(f"job:{JOB}", {"types": types}), after)
        stream = ChannelStream(self.following, followed, Request(), replays=after is not None)
        async with asyncio.timeout(60):
            async for data in stream.frames():
                self.answer.body += data
        followed.subscription.close()


@pytest.fixture
def keep_alive_s() -> float:
    return 15.0


@pytest.fixture
def world(keep_alive_s: float) -> World:
    return World(keep_alive_s)


impatient = pytest.mark.parametrize("keep_alive_s", [0.01])


async def test_the_events_of_its_end_are_told_though_they_are_read_one_by_one(world: World) -> None:
    world.job = active(id=JOB)
    world.store(available(id=JOB))
    following = asyncio.create_task(world.follow())
    await eventually(lambda: world.following._hub._subscriptions)
    world.store(completed(id=JOB))
    await following
    assert world.answer.types == ["job.state_changed", "job.completed", "result.stored"]


@impatient
async def test_a_job_that_is_removed_ends_its_stream(world: World) -> None:
    world.job = available(id=JOB)
    following = asyncio.create_task(world.follow())
    await eventually(lambda: b":heartbeat" in world.answer.body)
    world.job = None
    await following
    assert world.answer.types == []


@impatient
async def test_an_end_that_no_event_tells_is_told_from_the_record(world: World) -> None:
    world.job = available(id=JOB)
    following = asyncio.create_task(world.follow())
    await eventually(lambda: b":heartbeat" in world.answer.body)
    world.job = completed(id=JOB)
    await following
    assert world.answer.types == ["job.state_changed", "job.completed", "result.stored"]


@pytest.mark.parametrize("relaying", [True, False])
async def test_what_is_replayed_of_a_finished_job_always_has_its_end(world: World, *, relaying: bool) -> None:
    world.relaying = relaying
    world.job = completed(id=JOB)
    world.store(available(id=JOB))
    if relaying:
        world.store(completed(id=JOB))
    await world.follow(after=0)
    assert world.answer.types == ["job.enqueued", "job.state_changed", "job.completed", "result.stored"]


async def test_the_end_of_a_finished_job_is_filtered_too(world: World) -> None:
    world.job = completed(id=JOB)
    await world.follow(types="job.state_changed")
    assert world.answer.types == ["job.state_changed"]
    await world.follow(types="job.failed")
    assert world.answer.types == ["job.state_changed"]


async def test_what_a_reader_did_not_get_is_told_in_both_vocabularies(world: World) -> None:
    world.job = available(id=JOB)
    followed = await world.following.open(channel_of(f"job:{JOB}", {}), 7)
    stream = ChannelStream(world.following, followed, Request(), replays=True)
    kept = await world.reader.kept()
    beat = StoredEvent(0, "job.heartbeat", "q", JOB, b'{"id":"evt_1","time":"T"}')
    told = [stream._sent(found).decode() for found in (Missed(3, kept), HubReset(kept), Dropped(2, beat, beat))]
    assert told[0].startswith('event: missed\ndata: {"missed":3}\n\nid: 7\nevent: system.gap\n')
    assert f'"channel":"job:{JOB}"' in told[0]
    assert '"estimated_missed_count":3' in told[0]
    assert told[1].startswith('event: reset\ndata: {"last":"0"}\n\nid: 7\nevent: system.gap\n')
    assert "estimated" not in told[1]
    assert told[2].startswith(":events-dropped 2\n\nid: 7\nevent: system.events_dropped\n")
    assert '"dropped_count":2,"oldest_dropped_id":"evt_1","newest_dropped_id":"evt_1"' in told[2]
    followed.subscription.close()
