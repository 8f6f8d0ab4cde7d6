"""The projector as a process: killed at any moment, it costs no event and no count."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import new_job_id
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.event_reader import EventFilter, EventReader
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from ojs_index.asking.client import Queries
from support.events import all_events_of
from support.nats import NatsServer
from support.system import Processes
from support.waiting import eventually


@pytest.mark.slow
async def test_killed_projectors_lose_nothing(processes: Processes, nats_server: NatsServer) -> None:
    running = [processes.start("projector", "--projector-data", str(processes.folder / "index")) for _ in range(2)]
    for process in running:
        await asyncio.to_thread(process.ready)
    store = await Store.open(nats_server.url, StoreConfig(), role="test", features=STORE_FEATURES)
    events: list[str] = []
    try:
        for _ in range(3):
            pushing = asyncio.create_task(push(store, 100, events))
            await asyncio.to_thread(running.pop(0).kill)
            running.append(processes.start("projector", "--projector-data", str(processes.folder / "index")))
            await pushing
            await asyncio.to_thread(running[-1].ready)
            await eventually(lambda: everything_is_there(store, events))
    finally:
        await store.close()


async def push(store: Store, number: int, events: list[str]) -> None:
    """Push jobs, and note the ids of their events."""
    for _ in range(number):
        job = Job(id=new_job_id(store.clock.now()), type="t", args=Raw(b"[]"), state=State.AVAILABLE)
        pushed = await store.enqueue.push(job)
        [entry] = pushed.transitions
        events += [event.id for event in all_events_of(pushed, entry)]


async def everything_is_there(store: Store, events: list[str]) -> bool:
    with contextlib.suppress(OjsError):
        await Queries(store).until_relayed()
        page = await EventReader(store.bulk, store.config).read(0, EventFilter(), 100_000)
        assert sorted(msgspec.json.decode(event.body)["id"] for event in page.events) == sorted(events)
        return (await Queries(store).queue("default")).counts.available == len(events)
    return False
