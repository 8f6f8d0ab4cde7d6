"""Jobs go to workers that can run them, and wait in their queue for one (ojs-job-versioning §8.2, docs/adr/029)."""

from __future__ import annotations

import asyncio

import pytest

from integration.samples import draft, fetch, from_durables
from ojs_engine.domain.handlers import Handled, Handler
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import cancel
from ojs_engine.jetstream.api import ask
from ojs_engine.store.store import Store
from support.waiting import eventually

TYPE = "invoice.generate"
OLD = Handled([Handler(TYPE, "<2.0"), Handler("email.send")])
NEW = Handled([Handler(TYPE, ">=2.0")])


async def fetch_for(store: Store, queue: str, handled: Handled, count: int = 1, wait_ms: int = 0) -> list[str]:
    jobs = await store.dispatcher.fetch([queue], count, "w", None, wait_ms, handled=handled)
    return [job.id for job in jobs]


async def push(store: Store, queue: str, version: int | str | None = None, job_type: str = TYPE, priority: int = 0) -> Job:
    return await store.enqueue.push(draft(queue=queue, type=job_type, version=version, priority=priority))


async def test_a_job_goes_to_a_worker_of_its_version_and_waits_for_one(store: Store, queue: str) -> None:
    new, old = await push(store, queue, "2.0"), await push(store, queue, "1.5")
    assert await fetch_for(store, queue, OLD, 5) == [old.id]
    assert await fetch_for(store, queue, OLD, 5) == []
    assert (await store.jobs.get(new.id)).state == "available"
    assert await fetch_for(store, queue, NEW, 5) == [new.id]


async def test_a_job_without_a_version_goes_to_whoever_handles_its_type(store: Store, queue: str) -> None:
    invoice, email = await push(store, queue), await push(store, queue, job_type="email.send")
    assert await fetch_for(store, queue, NEW, 5) == [invoice.id]
    assert await fetch_for(store, queue, OLD, 5) == [email.id]


async def test_whoever_declares_nothing_gets_what_was_put_aside_as_well(store: Store, queue: str) -> None:
    jobs = [await push(store, queue, version) for version in ("2.0", "3.0")]
    assert await fetch_for(store, queue, OLD, 5) == []
    assert [job.id for job in await fetch(store, queue, count=5)] == [job.id for job in jobs]


async def test_what_a_worker_can_not_run_does_not_hide_what_is_behind_it(store: Store, queue: str) -> None:
    for _ in range(150):
        await push(store, queue, "2.0")
    old = await push(store, queue, "1.0")
    assert await fetch_for(store, queue, OLD) == [old.id]
    found = [job_id for _ in range(15) for job_id in await fetch_for(store, queue, NEW, 10)]
    assert len(set(found)) == 150


async def test_a_fetch_claims_no_more_than_it_asked_for(store: Store, queue: str) -> None:
    await push(store, queue, "2.0")
    old = [await push(store, queue, "1.0") for _ in range(6)]
    assert await fetch_for(store, queue, OLD, 2) == [job.id for job in old[:2]]
    assert await fetch_for(store, queue, OLD, 9) == [job.id for job in old[2:]]


async def test_priorities_hold_among_what_was_put_aside(store: Store, queue: str) -> None:
    low, high = await push(store, queue, "2.0", priority=-3), await push(store, queue, "2.0", priority=9)
    assert await fetch_for(store, queue, OLD, 5) == []
    between = await push(store, queue, "2.5")
    assert [job_id for _ in range(3) for job_id in await fetch_for(store, queue, NEW)] == [high.id, between.id, low.id]


async def test_a_worker_that_waits_is_woken_for_what_another_could_not_run(store: Store, queue: str) -> None:
    old = asyncio.create_task(fetch_for(store, queue, OLD, wait_ms=60_000))
    new = asyncio.create_task(fetch_for(store, queue, NEW, wait_ms=60_000))
    await eventually(lambda: store.dispatcher.wakeups.ready(queue) is not None)
    pushed = [await push(store, queue, version) for version in ("2.0", "1.0")]
    assert [await new, await old] == [[job.id] for job in pushed]


@pytest.mark.parametrize("version", ["2.0", None])
async def test_what_was_put_aside_and_cancelled_hides_nothing(store: Store, queue: str, version: str | None) -> None:
    other = Handled([Handler("email.send")])
    gone, kept = await push(store, queue, version), await push(store, queue, version)
    assert await fetch_for(store, queue, other, 5) == []
    await store.jobs.change(gone.id, cancel)
    assert await fetch_for(store, queue, NEW, 5) == [kept.id]


@pytest.mark.parametrize("timings", [from_durables()], ids=["durable"])
async def test_a_pause_holds_what_was_put_aside_too(store: Store, other: Store, queue: str) -> None:
    job = await push(store, queue, "2.0")
    assert await fetch_for(store, queue, OLD) == []
    await other.queues.pause(queue)
    assert await fetch_for(store, queue, NEW) == []
    await other.queues.resume(queue)
    assert await fetch_for(store, queue, NEW, wait_ms=60_000) == [job.id]


async def test_whatever_is_put_aside_is_put_aside_once(store: Store, queue: str) -> None:
    for _ in range(10):
        await push(store, queue, "2.0")
    assert await fetch_for(store, queue, OLD) == []
    before = await last_sequence(store)
    for _ in range(20):
        assert await fetch_for(store, queue, OLD) == []
    assert await last_sequence(store) == before


async def last_sequence(store: Store) -> int:
    info = await ask(store.nats, f"STREAM.INFO.{store.config.ready_stream}", None, "to say what is ready")
    return int(info["state"]["last_seq"])
