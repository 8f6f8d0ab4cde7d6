"""Each process makes the parts of its store that it works with, and no others."""

from __future__ import annotations

from functools import cached_property

import ojs_reaper
import ojs_scheduler
from integration.conftest import OpenStore
from integration.samples import draft, fetch, in_state
from ojs_engine.domain.job import State
from ojs_engine.store.store import Store
from ojs_runtime.settings import Settings
from support.nats import NatsServer
from support.waiting import eventually

PARTS = {name for name, value in vars(Store).items() if isinstance(value, cached_property) and not name.startswith("_")}


def made(store: Store) -> set[str]:
    return PARTS & vars(store).keys()


async def test_a_reaper_gives_a_job_back_and_knows_queues_and_workers_alone(
    nats_server: NatsServer, open_store: OpenStore, queue: str
) -> None:
    store = await open_store(nats_server.url)
    away = await open_store(nats_server.url)
    assert made(away) == set()
    reaper = ojs_reaper.build(away, Settings())
    await reaper.start()
    await store.enqueue.push(draft(queue=queue, visibility_timeout_ms=1_000))
    [job] = await fetch(store, queue)
    await eventually(lambda: in_state(store, job.id, State.AVAILABLE, State.RETRYABLE))
    await reaper.stop()
    assert made(away) <= {"queues", "workers"}


async def test_a_fetch_makes_nothing_that_only_a_push_needs(nats_server: NatsServer, open_store: OpenStore, queue: str) -> None:
    store = await open_store(nats_server.url)
    await store.enqueue.push(draft(queue=queue))
    fetching = await open_store(nats_server.url)
    assert await fetch(fetching, queue)
    assert made(fetching).isdisjoint({"enqueue", "spawner", "idempotency"})


async def test_a_scheduler_makes_a_delayed_job_available_without_a_dispatcher(
    nats_server: NatsServer, open_store: OpenStore, queue: str
) -> None:
    store = await open_store(nats_server.url)
    other = await open_store(nats_server.url)
    scheduler = ojs_scheduler.build(other, Settings())
    await scheduler.start()
    soon = store.clock.now() + 500
    pushed = await store.enqueue.push(draft(queue=queue, scheduled_at=soon))
    await eventually(lambda: in_state(store, pushed.id, State.AVAILABLE))
    await scheduler.stop()
    assert made(other).isdisjoint({"dispatcher", "idempotency", "workers"})
