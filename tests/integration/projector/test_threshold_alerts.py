"""Events of limits and bounded queues: announced once for each change, however many gateways see it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.projector.samples import patient
from integration.samples import acked, attempt, draft, fetch, put_raw, set_up
from ojs_engine.domain.job import Job
from ojs_engine.store.store import Store
from ojs_features.limits.loop import blocked_jobs_loop
from ojs_index.asking.messages import UnreadableAsk
from support.truth import all_events
from support.waiting import eventually


@pytest.fixture
async def other(open_here: OpenStore) -> Store:
    return await open_here()


async def told(store: Store) -> list[tuple[str, str, dict[str, Any]]]:
    """Type, subject and data of every event that is of no job, oldest first."""
    events = [msgspec.json.decode(event.body) for event in await all_events(store) if not event.type.startswith("job.")]
    return [(event["type"], event["subject"], event["data"]) for event in events]


def types(events: list[tuple[str, str, dict[str, Any]]]) -> list[str]:
    return [event[0] for event in events]


async def test_a_queue_that_fills_and_empties_is_told_of_once(store: Store, other: Store) -> None:
    await set_up([store, other], "mail.out", max_size=10)
    await asyncio.gather(*(attempt(one, "mail.out") for _ in range(15) for one in (store, other)))
    first = await told(store)
    assert types(first) == ["backpressure.warning", "queue.full"]
    assert {event[1] for event in first} == {"mail.out"}
    assert first[-1][2] == {"queue": "mail.out", "depth": 10, "bound": 10}
    await fetch(other, "mail.out", count=2)
    await attempt(store, "mail.out")
    assert await told(store) == first  # it has not been below its threshold since
    while await fetch(other, "mail.out", count=3):
        pass
    cleared = await eventually(lambda: more(store, other, first))
    assert types(cleared) == ["backpressure.cleared"]
    assert cleared[0][2]["depth"] < 8


async def test_pushes_alone_tell_of_a_threshold(store: Store, other: Store) -> None:
    await set_up([store, other], "mail.out", max_size=4, warning_threshold=0.5)
    for one in (store, other, store):
        await one.enqueue.push(draft(queue="mail.out"))
    [warning] = await told(store)
    assert (warning[0], warning[2]["depth"]) == ("backpressure.warning", 2)


async def more(store: Store, worker: Store, before: list[Any]) -> list[Any]:
    """What was told after `before`; an idle worker asks again meanwhile."""
    await fetch(worker, "mail.out")
    return (await told(store))[len(before) :]


def limited(key: str, **policy: Any) -> Job:
    return draft(queue="limited", rate_limit=Raw(msgspec.json.encode({"key": key, **policy})))


@pytest.fixture
async def keeper(open_here: OpenStore) -> Any:
    keeper = blocked_jobs_loop(await open_here(role="scheduler"))
    await keeper.start()
    yield keeper
    await keeper.stop()


@pytest.mark.usefixtures("keeper")
async def test_a_key_at_its_limit_is_told_of_once_until_nobody_waits(store: Store, other: Store) -> None:
    jobs = [await store.enqueue.push(limited("api", concurrency=2)) for _ in range(8)]
    fetched = await asyncio.gather(*(fetch(one, "limited", count=4) for one in (store, other)))
    running = [job for found in fetched for job in found]
    first = await told(store)
    assert [event[:2] for event in first] == [("rate_limit.exceeded", "api")]
    assert first[0][2] == {"key": "api", "strategy": "concurrency", "limit": 2, "current": 2}
    done: list[str] = []
    while len(done) < len(jobs):
        for job in running:
            await other.jobs.change(job.id, acked)
            done.append(job.id)
        running = await eventually(lambda: fetch(other, "limited")) if len(done) < len(jobs) else []
    found = await told(store)
    assert [event[:2] for event in found] == [("rate_limit.exceeded", "api"), ("rate_limit.released", "api")]
    assert found[1][2]["job_id"] in {job.id for job in jobs[2:]}


async def test_a_queues_own_limit_is_told_of_under_the_queue(store: Store, other: Store) -> None:
    await set_up([store, other], "slow", concurrency=1)
    for _ in range(2):
        await store.enqueue.push(draft(queue="slow"))
    [running] = await fetch(store, "slow")
    assert [await fetch(one, "slow") for one in (store, other, store)] == [[], [], []]
    [exceeded] = await told(store)
    assert exceeded[2] == {"key": "queue:slow", "queue": "slow", "strategy": "concurrency", "limit": 1, "current": 1}
    await store.jobs.change(running.id, acked)
    [running] = await fetch(other, "slow")
    assert len(await told(store)) == 1
    await store.jobs.change(running.id, acked)
    assert await fetch(store, "slow") == []
    assert types(await told(store)) == ["rate_limit.exceeded", "rate_limit.released"]


@pytest.mark.usefixtures("projector")
async def test_jobs_that_are_dropped_at_a_limit_tell_of_it_once(store: Store, other: Store) -> None:
    rate = {"limit": 1, "period": "PT1H"}
    for _ in range(5):
        await store.enqueue.push(limited("api", rate=rate, on_limit="drop"))
    for one in (store, other, store, other):
        await fetch(one, "limited", count=2)
    await patient(store).until_relayed()
    found = await told(store)
    assert types(found).count("rate_limit.exceeded") == 1
    dropped = [event for event in found if event[0] == "rate_limit.dropped"]
    assert len(dropped) == 4
    assert {event[2]["key"] for event in dropped} == {"api"}


async def test_a_limit_that_drops_is_released_by_the_next_that_starts(store: Store) -> None:
    rate = {"limit": 1, "period": "PT0.2S"}
    for _ in range(2):
        await store.enqueue.push(limited("api", rate=rate, on_limit="drop"))
    await fetch(store, "limited", count=2)

    async def starts() -> list[Job]:
        await store.enqueue.push(limited("api", rate=rate, on_limit="drop"))
        return await fetch(store, "limited")

    [job] = await eventually(starts)
    found = [event for event in await told(store) if event[0] != "rate_limit.dropped"]
    assert types(found) == ["rate_limit.exceeded", "rate_limit.released"]
    assert found[1][2] == {"key": "api", "strategy": "rate", "job_id": job.id}


async def test_a_process_that_starts_goes_by_what_was_announced(store: Store, open_here: OpenStore) -> None:
    await set_up([store], "mail", max_size=2)
    for _ in range(2):
        await store.enqueue.push(draft(queue="mail"))
    first = await told(store)
    assert types(first) == ["backpressure.warning", "queue.full"]
    late = await open_here()
    await set_up([late], "mail", max_size=2)
    assert await attempt(late, "mail") is None
    assert await told(store) == first
    while await fetch(late, "mail"):
        pass
    assert types((await told(store))[2:]) == ["backpressure.cleared"]


@pytest.mark.usefixtures("projector")
async def test_the_records_that_older_versions_kept_of_alerts_disturb_nobody(store: Store) -> None:
    log = [[1, store.clock.now(), "queue.full", {"queue": "mail", "depth": 2, "bound": 2}]]
    record = {"name": "mail", "queue": "mail", "created_at": 1, "level": "full", "log": log, "op": "op"}
    subject = f"$KV.{store.config.bucket}.crossing.bound.mail"
    await put_raw(store, subject, msgspec.json.encode(record), "Nats-TTL: 60s\r\n")
    await put_raw(store, f"{subject}.x", b"{", "Nats-TTL: 60s\r\n")
    await set_up([store], "mail", max_size=2)
    await store.enqueue.push(draft(queue="mail"))
    await patient(store).until_relayed()
    assert await told(store) == []
    assert (await patient(store).unreadable(UnreadableAsk())).records == []
    await store.enqueue.push(draft(queue="mail"))
    assert types(await told(store)) == ["backpressure.warning", "queue.full"]
