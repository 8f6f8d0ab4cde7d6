from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from integration.conftest import OpenStore
from integration.samples import configure, draft, fetch, losing_answers, requeued, set_up, subjects, tokens
from ojs_engine.domain.job import State
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.domain.queues.record import QueueRecord, configured
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Connection
from ojs_engine.store.store import Store
from support.nats import NatsServer
from support.waiting import eventually

pytestmark = pytest.mark.usefixtures("way", "own_stores")


async def consumers(store: Store, queue: str) -> list[str]:
    answer = await call(store.nats, f"CONSUMER.NAMES.{store.config.ready_stream}")
    prefix = store.config.ready_consumer(store.config.ready(queue, 0)).removesuffix("100")
    return [name for name in answer["consumers"] or () if name.startswith(prefix)]


@contextmanager
def held_back(nats: Connection, subject: str, about: str) -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Hold the requests to a subject back whose payload speaks of something: (one is held, let them go)."""
    asked, go = asyncio.Event(), asyncio.Event()
    original = nats.request

    def request(to: str, payload: bytes = b"", headers: str = "", timeout_s: float = 2.0) -> Any:
        if subject not in to or about.encode() not in payload:
            return original(to, payload, headers, timeout_s)

        async def later() -> Any:
            asked.set()
            await go.wait()
            return await original(to, payload, headers, timeout_s)

        return asyncio.ensure_future(later())

    nats.request = request  # type: ignore[method-assign, assignment]
    try:
        yield asked, go
    finally:
        nats.request = original  # type: ignore[method-assign]


def stopped_before(store: Store, subject: str) -> tuple[asyncio.Event, asyncio.Event, Callable[[], None]]:
    """Hold the store's next request to a subject back: (it is held, let it go, take the hook away)."""
    held, go = asyncio.Event(), asyncio.Event()
    nats, original = store.bulk, store.bulk.request

    def request(to: str, payload: bytes = b"", headers: str = "", timeout_s: float = 2.0) -> Any:
        if subject in to and not held.is_set():
            held.set()

            async def later() -> Any:
                await go.wait()
                return await original(to, payload, headers, timeout_s)

            return asyncio.ensure_future(later())
        return original(to, payload, headers, timeout_s)

    nats.request = request  # type: ignore[method-assign, assignment]

    def undo() -> None:
        nats.request = original  # type: ignore[method-assign]

    return held, go, undo


async def test_a_pause_holds_on_every_gateway_at_once_and_ends_with_the_resume(store: Store, other: Store, queue: str) -> None:
    job = await store.enqueue.push(draft(queue=queue))
    held = await fetch(other, queue)  # both know the queue's durable
    await other.jobs.change(job.id, requeued)
    assert held
    record = await store.queues.pause(queue)
    assert record.state == "paused"
    # No wait for the other's knowledge: it may still think that the queue goes on.
    assert await fetch(other, queue) == []
    assert await fetch(store, queue) == []
    assert await consumers(store, queue) == []
    late = await other.enqueue.push(draft(queue=queue, priority=7))
    assert late.state is State.AVAILABLE
    assert await fetch(other, queue) == []
    await other.queues.resume(queue)
    found = await eventually(lambda: fetch(store, queue, count=5))
    assert [one.id for one in found] == [late.id, job.id]


async def test_a_pause_survives_a_restart_of_everything(
    own_server: Callable[..., NatsServer], open_store: OpenStore, queue: str
) -> None:
    with own_server() as server:
        first = await open_store(server.url)
        await first.enqueue.push(draft(queue=queue))
        await first.queues.pause(queue)
        await first.close()
        server.restart()
        again = await open_store(server.url)
        assert await fetch(again, queue) == []
        record = await again.queues.get(queue)
        assert record is not None
        assert record.state == "paused"
        await again.queues.resume(queue)
        assert len(await eventually(lambda: fetch(again, queue))) == 1


@pytest.mark.parametrize("way", ["durable"], indirect=True)
async def test_a_durable_that_is_being_made_during_a_pause_is_never_let_go(store: Store, other: Store, queue: str) -> None:
    await store.enqueue.push(draft(queue=queue))
    held, go, undo = stopped_before(other, "CONSUMER.PAUSE")  # it has read that the queue goes on
    fetching = asyncio.create_task(fetch(other, queue))
    try:
        await asyncio.wait_for(held.wait(), 60.0)
        await store.queues.pause(queue)
        go.set()
        assert await fetching == []
        assert await consumers(store, queue) == []
    finally:
        undo()
    assert await tokens(store, queue) == 1


@pytest.mark.parametrize("way", ["head"], indirect=True)
async def test_a_token_that_is_being_read_during_a_pause_is_not_handed_out(store: Store, other: Store, queue: str) -> None:
    await store.enqueue.push(draft(queue=queue))
    record = other.config.queue(queue)
    with held_back(other.nats, f"DIRECT.GET.{other.config.records_stream}.{record}", "") as (asked, go):
        fetching = asyncio.create_task(fetch(other, queue))  # it thinks that the queue goes on, and has the token in hand
        await asyncio.wait_for(asked.wait(), 60.0)
        await store.queues.pause(queue)
        go.set()
        assert await fetching == []
    assert await tokens(store, queue) == 1
    await store.queues.resume(queue)
    assert await eventually(lambda: fetch(other, queue))


async def test_a_durable_whose_maker_died_stays_shut_while_the_queue_is_paused(store: Store, other: Store, queue: str) -> None:
    await store.enqueue.push(draft(queue=queue))
    await store.queues.pause(queue)
    assert await fetch(other, queue) == []
    subject = store.config.ready(queue, 0)
    made = await other.dispatcher.consumers.create(subject)  # and nothing after that
    assert made
    assert await fetch(store, queue) == []
    assert await fetch(other, queue) == []


async def test_a_waiting_fetch_goes_on_with_the_resume(store: Store, other: Store, queue: str) -> None:
    job = await store.enqueue.push(draft(queue=queue))
    await store.queues.pause(queue)
    waiting = asyncio.create_task(fetch(other, queue, wait_ms=60_000))
    await eventually(lambda: subjects(store, store.config.records_stream, store.config.queue(queue)))
    await store.queues.resume(queue)
    found = await asyncio.wait_for(waiting, 60.0)
    assert [one.id for one in found] == [job.id]


async def test_a_pause_whose_answer_was_lost_is_completed_by_repeating_it(store: Store, queue: str) -> None:
    await store.enqueue.push(draft(queue=queue))
    assert await fetch(store, queue)
    with losing_answers(store.nats, store.config.queue(queue)) as lost:
        record = await store.queues.pause(queue)
    assert lost
    assert record.state == "paused"
    assert (await store.queues.pause(queue)).paused_at == record.paused_at


async def test_settings_reach_every_process_and_leave_when_a_reset_purges_them(store: Store, other: Store, queue: str) -> None:
    assert await other.queues.settings(queue) is None
    await set_up([store, other], queue, default_timeout_ms=5_000)
    assert (await other.enqueue.push(draft(queue=queue))).timeout_ms == 5_000
    await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": store.config.queue(queue)})
    await other.watches.reset()
    assert await other.queues.settings(queue) is None


async def test_the_common_policy_lies_below_every_queue(store: Store, other: Store, queue: str) -> None:
    await configure(store, "_default", default_timeout_ms=5_000, visibility_timeout_ms=7_000)
    await configure(store, queue, default_timeout_ms=9_000)
    try:

        async def known() -> bool:
            found = [await other.queues.settings(name) for name in (queue, f"{queue}.other")]
            return all(settings is not None and settings.config.visibility_timeout_ms for settings in found)

        await eventually(known)
        job = await other.enqueue.push(draft(queue=queue))
        plain = await other.enqueue.push(draft(queue=f"{queue}.other"))
        assert (job.timeout_ms, job.visibility_timeout_ms) == (9_000, 7_000)
        assert (plain.timeout_ms, plain.visibility_timeout_ms) == (5_000, 7_000)
        assert "_default" not in await store.queues.all()
    finally:
        await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": store.config.queue("_default")})
        await store.watches.reset()


async def test_two_who_change_a_queue_at_once_both_succeed(store: Store, other: Store, queue: str) -> None:
    def grown(old: QueueRecord | None, moment: Any) -> QueueRecord:
        size = old.config.max_size or 0 if old is not None else 0
        return configured(old, queue, QueueConfig(max_size=size + 1), moment)

    changes: list[Awaitable[QueueRecord | None]] = [one.queues.change(queue, grown) for one in (store, other) for _ in range(4)]
    await asyncio.gather(*changes)
    record = await store.queues.get(queue)
    assert record is not None
    assert record.config.max_size == 8
