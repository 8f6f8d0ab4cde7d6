"""Maintenance: nothing is fetched from any queue, and nothing that waits for its time starts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from integration.conftest import OpenStore
from integration.samples import delayed, draft, due_subjects, fetch, requeued
from ojs_engine.domain.job import State
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import Maintenance, resumed
from ojs_engine.jetstream.api import call
from ojs_engine.store.store import Store
from ojs_features.crons.changes import Registration
from ojs_features.crons.store import Crons
from ojs_runtime.settings import Settings
from ojs_scheduler import build
from support.nats import NatsServer
from support.waiting import eventually


@pytest.fixture
async def store(nats_server: NatsServer, open_store: OpenStore) -> Store:
    """On a server of the test's own: all queues are held."""
    return await open_store(nats_server.url)


@pytest.fixture
async def other(nats_server: NatsServer, open_store: OpenStore) -> Store:
    return await open_store(nats_server.url)


@pytest.fixture
async def scheduler(nats_server: NatsServer, open_store: OpenStore) -> AsyncIterator[Store]:
    """The store of a scheduler that runs."""
    store = await open_store(nats_server.url, role="scheduler")
    service = build(store, Settings())
    await service.start()
    yield store
    await service.stop()


pytestmark = pytest.mark.usefixtures("way")


async def end(store: Store) -> None:
    await store.queues.change(MAINTENANCE, lambda old, moment: resumed(old, MAINTENANCE, moment))


async def test_it_holds_every_queue_on_every_gateway_at_once(store: Store, other: Store) -> None:
    jobs = [await store.enqueue.push(draft(queue=name, priority=number)) for number, name in enumerate(("a", "b.c"))]
    for name in ("a", "b.c"):  # both gateways know the durables
        (job,) = await fetch(other, name)
        await other.jobs.change(job.id, requeued)
    await store.queues.hold_all(Maintenance(reason="moving"))
    assert [await fetch(one, name) for one in (other, store) for name in ("a", "b.c", "new")] == [[]] * 6
    late = await other.enqueue.push(draft(queue="new"))
    assert late.state is State.AVAILABLE, "pushes are kept for later"
    await end(other)
    found: list[str] = []

    async def all_are_fetched() -> bool:
        for name in ("a", "b.c", "new"):
            found.extend(job.id for job in await fetch(store, name))
        return len(found) == 3

    await eventually(all_are_fetched)
    assert set(found) == {*(job.id for job in jobs), late.id}


async def test_a_durable_that_opened_by_itself_is_not_pulled_from(store: Store, other: Store) -> None:
    """Its maker died before it could take it away again, and another gateway knows the durable from before."""
    await store.enqueue.push(draft(queue="a"))
    (job,) = await fetch(store, "a")
    await store.jobs.change(job.id, requeued)
    await store.queues.hold_all(Maintenance())
    subject = store.config.ready("a", 0)
    assert await other.dispatcher.consumers.create(subject)
    name = f"{store.config.ready_stream}.{store.config.ready_consumer(subject)}"
    assert "error" not in await call(store.nats, f"CONSUMER.PAUSE.{name}", {})
    await eventually(lambda: store.queues._watch.fresh)
    assert await fetch(store, "a") == []


async def test_it_survives_a_restart_of_the_gateways_and_leaves_pauses_alone(
    nats_server: NatsServer, open_store: OpenStore, store: Store
) -> None:
    await store.enqueue.push(draft(queue="a"))
    await store.enqueue.push(draft(queue="paused"))
    await store.queues.pause("paused")
    await store.queues.hold_all(Maintenance())
    again = await open_store(nats_server.url)
    assert await fetch(again, "a") == []
    await end(again)
    assert await eventually(lambda: fetch(again, "a"))
    assert await fetch(again, "paused") == []
    assert MAINTENANCE not in await again.queues.all()


async def test_it_ends_by_itself_when_it_has_a_duration(store: Store, other: Store) -> None:
    job = await store.enqueue.push(draft(queue="a"))
    await store.queues.hold_all(Maintenance(ends_at=store.clock.now() + 600))
    assert await fetch(other, "a") == []
    assert [one.id for one in await eventually(lambda: fetch(other, "a"))] == [job.id]


@pytest.mark.usefixtures("scheduler")
async def test_what_is_due_waits_for_its_end(store: Store) -> None:
    await store.queues.hold_all(Maintenance())
    job = await delayed(store, 100, queue="a")
    tick = draft(queue="b")
    await store.of(Crons).register(Registration(name="every", expression="* * * * * *", draft=tick))
    await eventually(lambda: due_subjects(store, job.id))
    since = store.clock.now()
    # Two ticks are due by then, and a scheduler would have come to the job within milliseconds.
    await eventually(lambda: store.clock.now() > since + 2_000)
    assert (await store.jobs.get(job.id)).state is State.SCHEDULED
    assert (await store.of(Crons).get("every")).run_count == 0
    await end(store)
    assert [one.id for one in await eventually(lambda: fetch(store, "a"))] == [job.id]
    await eventually(lambda: fetch(store, "b"))
