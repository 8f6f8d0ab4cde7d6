"""Systems that share a nats-server under different namespaces: none sees, wakes or wipes anything of another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.samples import KINDS, acked, draft, fetch, new_id, set_up, subjects
from integration.workflows.flows import chain, create
from ojs_command.client.doctor.findings import Finding
from ojs_command.client.doctor.streams import check_nats
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.jetstream.event_reader import EventFilter, EventReader, StoredEvent
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, LASTING
from ojs_engine.store.announce import announce, tell
from ojs_engine.store.store import Store
from ojs_features.all import FOLLOWED
from ojs_features.crons.changes import Registration
from ojs_features.crons.store import Crons
from ojs_features.webhooks.records import Subscription
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_index.asking.client import Queries
from ojs_index.asking.messages import JobsAsk
from ojs_projector.projector import Projector
from support.nats import NatsServer
from support.waiting import eventually


class Systems(NamedTuple):
    """One without a namespace, and two of which the name of one begins with that of the other."""

    default: Store
    shop: Store
    shop_test: Store

    def others(self, store: Store) -> list[Store]:
        return [other for other in self if other is not store]


@pytest.fixture
async def systems(nats_server: NatsServer, open_store: OpenStore) -> Systems:
    names = DEFAULT_NAMESPACE, "shop", "shop-test"
    return Systems(*[await open_store(nats_server.url, namespace=name) for name in names])


async def everything(store: Store) -> set[str]:
    """The subjects of all that a system stores, but for the records that services write by themselves."""
    config = store.config
    found: set[str] = set()
    for stream in config.streams():
        for subject in stream["subjects"]:
            found |= set(await subjects(store, str(stream["name"]), subject))
    return {subject for subject in found if subject.removeprefix(f"$KV.{config.bucket}.").split(".")[0] not in LASTING}


async def register(store: Store, name: str) -> None:
    template = keyed(Job(id="", type="test.job", args=Raw(b"[]"), state=State.AVAILABLE, queue="crons"))
    await store.of(Crons).register(Registration(name=name, expression="0 0 1 1 *", draft=template))


async def subscribe(store: Store) -> str:
    wanted = Subscription(id="", url="https://hooks.example/", events=("job.*",), secret="some-secret")
    return (await store.of(Webhooks).create(wanted)).id


async def filled(store: Store, job_id: str) -> None:
    """Store something of every kind: jobs with and without a lock, a limit, a timer; a queue, a cron entry, …"""
    await set_up([store], "limited", concurrency=1, max_size=10)
    await store.enqueue.push(draft(id=job_id, queue="plain"))
    await store.enqueue.push(draft(queue="limited"))
    await store.enqueue.push(draft(queue="plain", state=State.SCHEDULED, scheduled_at=4_000_000_000_000))
    assert await fetch(store, "limited", worker="w")
    await register(store, "nightly")
    await create(store, chain("steps", "first", "second"))
    await subscribe(store)
    await announce(store, "job.completed", scope="plain", subject=job_id, data={"job_type": "test.job"})


async def test_nothing_of_one_system_is_stored_in_another(systems: Systems) -> None:
    job_id = new_id()
    for store in systems:
        others = systems.others(store)
        before = [await everything(other) for other in others]
        await filled(store, job_id)
        assert {name.split(".")[1 if name.startswith("$KV") else 0] for name in await everything(store)} == {
            store.config.namespace
        }
        assert [await everything(other) for other in others] == before
    # The same id is a job of its own in each of them.
    [held] = await fetch(systems.shop, "plain", worker="w")
    assert held.id == job_id
    await systems.shop.jobs.change(job_id, acked)
    states = [(await store.records.many([job_id]))[job_id].job for store in systems]
    assert [job is not None and job.state for job in states] == [State.AVAILABLE, State.COMPLETED, State.AVAILABLE]


async def test_a_push_is_handed_to_those_alone_who_wait_in_its_system(systems: Systems) -> None:
    fetches = [asyncio.create_task(fetch(store, "awaited", wait_ms=60_000)) for store in systems]
    pushed = await systems.shop.enqueue.push(draft(queue="awaited"))
    assert [job.id for job in await fetches[1]] == [pushed.id]
    assert [one.done() for one in fetches] == [False, True, False]
    for store, waiting in ((systems.default, fetches[0]), (systems.shop_test, fetches[2])):
        own = await store.enqueue.push(draft(queue="awaited"))
        assert [job.id for job in await waiting] == [own.id]


async def test_events_stored_and_live_are_heard_in_their_system_alone(systems: Systems) -> None:
    heard: list[list[StoredEvent]] = [[] for _ in systems]
    readers = [EventReader(store.bulk, store.config) for store in systems]
    stops = [await reader.listen(found.append) for reader, found in zip(readers, heard, strict=True)]
    for store in systems:
        subject = f"of-{store.config.namespace}"
        await announce(store, "queue.paused", scope="q", subject=subject, data={})
        tell(store, "worker.heartbeat", scope="worker", subject=subject, data={})
    await eventually(lambda: all(heard))
    for store, reader, live in zip(systems, readers, heard, strict=True):
        subject = f"of-{store.config.namespace}"
        stored = (await reader.read(0, EventFilter(), 100)).events
        narrow = (await reader.read(0, EventFilter(types=("queue.paused",), queues=("q",), subject_id=subject), 100)).events
        for found in (stored, narrow):
            assert [(event.type, event.queue, event.subject_id) for event in found] == [("queue.paused", "q", subject)]
        assert [(event.type, event.queue, event.subject_id) for event in live] == [("worker.heartbeat", "worker", subject)]
    for stop in stops:
        await stop()


async def test_a_pause_holds_a_queue_of_its_system_alone(systems: Systems) -> None:
    for store in systems:
        await store.enqueue.push(draft(queue="held"))
    await systems.shop.queues.pause("held")
    assert await fetch(systems.shop, "held") == []
    assert [len(await fetch(store, "held")) for store in systems.others(systems.shop)] == [1, 1]


async def test_a_reset_wipes_and_asks_its_own_system_alone(systems: Systems) -> None:
    asked: list[str] = []
    for store in systems:

        async def dropped(name: str = store.config.namespace) -> None:
            asked.append(name)

        store.on_reset(dropped)
        await filled(store, new_id())
    others = systems.others(systems.shop)
    before = [await everything(other) for other in others]
    await systems.shop.reset(KINDS)
    assert asked == ["shop"]
    assert await everything(systems.shop) == set()
    assert [await everything(other) for other in others] == before
    assert [len(await fetch(other, "plain")) for other in others] == [1, 1]


@asynccontextmanager
async def projectors(open_store: OpenStore, url: str, folder: Path, *names: str) -> AsyncIterator[None]:
    """One for each namespace, which keep their indexes in one folder."""
    started: list[Projector] = []
    try:
        for name in names:
            started.append(Projector(await open_store(url, role="projector", namespace=name), folder, features=FOLLOWED))
            await started[-1].start()
        yield
    finally:
        for projector in started:
            await projector.stop()


async def test_lists_show_the_jobs_of_their_system_alone(
    systems: Systems, nats_server: NatsServer, open_store: OpenStore, tmp_path: Path
) -> None:
    pushed = [(await store.enqueue.push(draft(queue="listed"))).id for store in systems]
    for _ in range(2):  # the second time with whichever index of the first
        async with projectors(open_store, nats_server.url, tmp_path, *(store.config.namespace for store in systems[::-1])):
            for store, job_id in zip(systems, pushed, strict=True):
                queries = Queries(store)

                async def listed(asking: Queries = queries) -> list[str] | None:
                    page = await asking.jobs(JobsAsk(limit=10))
                    return None if page.partial else [job.id for job in page.jobs]

                assert await eventually(listed) == [job_id]


async def test_the_doctor_names_the_namespaces_that_there_are(nats_server: NatsServer, open_store: OpenStore) -> None:
    def problems(findings: list[Finding]) -> list[Finding]:
        return [finding for finding in findings if finding.status == "problem"]

    empty = problems(await check_nats(nats_server.url, "shop"))
    assert [finding.check for finding in empty] == ["streams"] * 4
    for name in ("shop", "shop-test"):
        await open_store(nats_server.url, namespace=name)
    assert problems(await check_nats(nats_server.url, "shop-test")) == []
    [wrong] = problems(await check_nats(nats_server.url))
    assert wrong.check == "namespace"
    assert wrong.found == "there is nothing in the namespace ojs, but there is in: shop, shop-test"
    assert "--namespace" in wrong.remedy
    with pytest.raises(ValueError, match=r"--namespace: .*Shop"):
        await check_nats(nats_server.url, "Shop")
