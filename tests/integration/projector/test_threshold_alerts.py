"""Events of limits and bounded queues: told once for each crossing, however many gateways see it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.projector.conftest import StartProjector
from integration.projector.samples import crash
from integration.samples import acked, attempt, draft, fetch, refusal, set_up
from ojs_core.base.errors import OjsError
from ojs_core.domain.job import Job
from ojs_core.read.client import Queries
from ojs_core.store.store import Store
from ojs_projector.projector import Projector
from ojs_scheduler.blocked_jobs import blocked_jobs_loop
from support.truth import all_events
from support.waiting import eventually


@pytest.fixture
async def other(open_here: OpenStore) -> Store:
    return await open_here()


async def told(store: Store) -> list[tuple[str, str, dict[str, Any]]]:
    """Type, subject and data of every event that is of no job, oldest first."""
    await Queries(store).until_relayed()
    events = [msgspec.json.decode(event.body) for event in await all_events(store) if not event.type.startswith("job.")]
    return [(event["type"], event["subject"], event["data"]) for event in events]


def types(events: list[tuple[str, str, dict[str, Any]]]) -> list[str]:
    return [event[0] for event in events]


@pytest.mark.usefixtures("projector")
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


@pytest.mark.usefixtures("projector")
async def test_pushes_alone_tell_of_a_threshold(store: Store, other: Store) -> None:
    await set_up([store, other], "mail.out", max_size=4, warning_threshold=0.5)
    for one in (store, other, store):
        await one.jobs.push(draft(queue="mail.out"))
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


@pytest.mark.usefixtures("projector", "keeper")
async def test_a_key_at_its_limit_is_told_of_once_until_nobody_waits(store: Store, other: Store) -> None:
    jobs = [await store.jobs.push(limited("api", concurrency=2)) for _ in range(8)]
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


@pytest.mark.usefixtures("projector", "keeper")
@pytest.mark.slow
async def test_a_stop_that_came_too_soon_after_the_last_is_told_when_it_lasts(store: Store) -> None:
    policy = {"concurrency": 1}
    for _ in range(2):
        await store.jobs.push(limited("api", **policy))
    for _ in range(2):
        [running] = await eventually(lambda: fetch(store, "limited"))
        await fetch(store, "limited")
        await store.jobs.change(running.id, acked)
    await eventually(lambda: released(store, 1))
    await store.jobs.push(limited("api", **policy))
    await store.jobs.push(limited("api", **policy))
    await eventually(lambda: fetch(store, "limited"))
    await fetch(store, "limited")
    found = await eventually(lambda: exceeded(store, 2))  # it is told when it has lasted for `SPACING_MS`
    assert types(found) == ["rate_limit.exceeded", "rate_limit.released", "rate_limit.exceeded"]


async def exceeded(store: Store, number: int) -> list[Any]:
    found = await told(store)
    return found if types(found).count("rate_limit.exceeded") == number else []


async def released(store: Store, number: int) -> bool:
    return types(await told(store)).count("rate_limit.released") == number


@pytest.mark.usefixtures("projector")
async def test_a_queues_own_limit_is_told_of_under_the_queue(store: Store, other: Store) -> None:
    await set_up([store, other], "slow", concurrency=1)
    for _ in range(2):
        await store.jobs.push(draft(queue="slow"))
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
        await store.jobs.push(limited("api", rate=rate, on_limit="drop"))
    for one in (store, other, store, other):
        await fetch(one, "limited", count=2)
    found = await told(store)
    assert types(found).count("rate_limit.exceeded") == 1
    dropped = [event for event in found if event[0] == "rate_limit.dropped"]
    assert len(dropped) == 4
    assert {event[2]["key"] for event in dropped} == {"api"}


@pytest.mark.usefixtures("projector")
async def test_a_limit_that_drops_is_released_by_the_next_that_starts(store: Store) -> None:
    rate = {"limit": 1, "period": "PT0.2S"}
    for _ in range(2):
        await store.jobs.push(limited("api", rate=rate, on_limit="drop"))
    await fetch(store, "limited", count=2)

    async def starts() -> list[Job]:
        await store.jobs.push(limited("api", rate=rate, on_limit="drop"))
        return await fetch(store, "limited")

    [job] = await eventually(starts)
    found = [event for event in await told(store) if event[0] != "rate_limit.dropped"]
    assert types(found) == ["rate_limit.exceeded", "rate_limit.released"]
    assert found[1][2] == {"key": "api", "strategy": "rate", "job_id": job.id}


@pytest.mark.usefixtures("nats_server")
async def test_a_projector_that_was_away_tells_each_crossing_once(start_projector: StartProjector, store: Store) -> None:
    projector: Projector = await start_projector()
    await set_up([store], "mail", max_size=2)
    await store.jobs.push(draft(queue="mail"))
    await store.jobs.push(draft(queue="mail"))
    await told(store)
    await crash(projector)
    with refusal("queue_full"):
        await store.jobs.push(draft(queue="mail"))
    await fetch(store, "mail", count=2)
    await start_projector()
    found = await eventually(lambda: relayed(store))
    assert types(found) == ["backpressure.warning", "queue.full", "backpressure.cleared"]


async def relayed(store: Store) -> list[Any]:
    try:
        return await told(store)
    except OjsError:  # nobody relays yet
        return []
