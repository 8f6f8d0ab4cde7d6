"""Hints doubled, late and lost; coordinators that die at every single write; two at once. Each step is created exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from integration.conftest import OpenStore
from integration.samples import KINDS, fetch, new_id, put_raw, subjects
from integration.workflows.flows import (
    Crash,
    batch,
    chain,
    coordinate,
    crashing,
    create,
    end,
    finish,
    group,
    hints,
    job,
    members,
)
from ojs_engine.domain.job import State
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, REST
from ojs_engine.store.store import Store
from ojs_features.workflows.advance import CREATED_AT_ONCE
from ojs_features.workflows.coordinator import Coordinator
from ojs_features.workflows.record import counts, job_id
from ojs_features.workflows.steps import StepWorker
from ojs_features.workflows.store import Workflows
from ojs_features.workflows.subjects import Subjects
from support.examples import amount
from support.nats import NatsServer
from support.outside import Send, before, reads_of, tapped
from support.waiting import eventually


async def dies(store: Store, after: int, what: Awaitable[Any]) -> bool:
    """Whether the process died on the way, at its write number `after`."""
    with crashing(store, after):
        try:
            await what
        except Crash:
            return True
    return False


async def everything_once(store: Store, name: str, expected: list[str]) -> None:
    jobs = await members(store, name)
    assert sorted(one.type for one in jobs) == sorted(expected)
    assert all(one.state is State.COMPLETED for one in jobs)
    assert all(one.attempt == 1 for one in jobs), "no job was handed out twice"


Setup = Callable[[Store, str], Awaitable[tuple[str, list[str]]]]


async def chain_step(store: Store, queue: str) -> tuple[str, list[str]]:
    name = await create(store, chain(queue, "a", "b", "c"))
    await end(store, queue)
    return name, ["a", "b", "c"]


async def fired_callbacks(store: Store, queue: str) -> tuple[str, list[str]]:
    name = await create(store, batch(queue, "a", "b", callbacks=("on_complete", "on_success")))
    await end(store, queue, number=2)
    return name, ["a", "b", "on.complete", "on.success"]


async def fan_out(store: Store, queue: str) -> tuple[str, list[str]]:
    name = await create(store, {"type": "chain", "steps": [job("a", queue), group(queue, "b", "c", "d"), job("e", queue)]})
    await end(store, queue)
    return name, ["a", "b", "c", "d", "e"]


async def last_step(store: Store, queue: str) -> tuple[str, list[str]]:
    name = await create(store, chain(queue, "a"))
    await end(store, queue)
    return name, ["a"]


@pytest.mark.parametrize("setup", [chain_step, fired_callbacks, fan_out, last_step])
async def test_a_coordinator_may_die_at_any_write(store: Store, other: Store, queue: str, setup: Setup) -> None:
    for after in range(40):
        here = f"{queue}.{after}"
        name, expected = await setup(store, here)
        died = await dies(store, after, coordinate(store, name))
        await coordinate(other, name)
        stored = await finish(other, name, here)
        assert stored.record.state == "completed"
        await everything_once(other, name, expected)
        assert await hints(other, name) == []
        if not died:
            assert after > 2, "it has to have written something"
            return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("number", [3, pytest.param(620, marks=pytest.mark.slow)])
async def test_a_gateway_may_die_at_any_write_of_a_creation(store: Store, other: Store, queue: str, number: int) -> None:
    step = 1 if number < 10 else 300 if amount() == "all" else 500
    for round_ in range(40):
        here = f"{queue}.{round_}"
        definition = group(here, *[f"t{index}" for index in range(number)])
        definition["id"] = name = f"01946{number:03d}-1a2b-7c3d-8e4f-5a6b7c8d{round_:04x}"
        died = await dies(store, round_ * step, create(store, definition))
        if died:
            await other.of(Workflows).due(name, other.clock.now() + 60_000)  # what the timer does that was set first of all
        found = await other.records.latest_raw(Subjects(other.config).workflow(name))
        if found is not None and found[1]:  # else nobody was told that there is one, and nothing of it may be left
            stored = await finish(other, name, here)
            assert stored.record.state == "completed"
            await everything_once(other, name, [f"t{index}" for index in range(number)])
        else:
            assert await other.records.subjects(Subjects(other.config).definition(name, "", REST)) == []
            assert await members(other, name) == []
        if not died:
            assert found is not None
            assert found[1]
            return
    raise AssertionError("it never came to its end")


async def test_a_gateway_may_die_at_any_write_of_a_cancellation(store: Store, other: Store, queue: str) -> None:
    for after in range(60):
        here = f"{queue}.{after}"
        name = await create(store, group(here, "a", "b", "c"))
        (active,) = await fetch(store, here)
        died = await dies(store, after, store.of(Workflows).cancel(name))
        record = (await other.of(Workflows).get(name)).record
        if record.cancelling:
            assert record.timer is not None
            await other.of(Workflows).due(name, record.timer.at)
        if record.state == "cancelled":
            states = sorted((one.id == active.id, one.state) for one in await members(other, name))
            assert states == [(False, State.CANCELLED), (False, State.CANCELLED), (True, State.ACTIVE)]
            assert (await other.of(Workflows).get(name)).record.cancelling is False
        else:
            assert died
            assert record.state == "running"
        if not died:
            return
    raise AssertionError("it never came to its end")


async def test_a_gateway_may_die_at_any_write_of_a_retry(store: Store, other: Store, queue: str) -> None:
    for after in range(40):
        here = f"{queue}.{after}"
        name = await create(store, chain(here, "a", "b"))
        await end(store, here, good=False)
        await coordinate(store, name)
        died = await dies(store, after, store.of(Workflows).retry(name))
        record = (await other.of(Workflows).get(name)).record
        if record.state == "running":
            assert record.timer is not None
            await other.of(Workflows).due(name, record.timer.at)
            assert (await finish(other, name, here)).record.state == "completed"
            assert sorted(one.type for one in await members(other, name)) == ["a", "a", "b"]
        else:
            assert died
        if not died:
            return
    raise AssertionError("it never came to its end")


async def test_doubled_and_late_hints_change_nothing(store: Store, other: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b", "c"))
    kept = []
    for _ in range(3):
        await end(store, queue)
        kept += await hints(store, name)
        await asyncio.gather(coordinate(store, name), coordinate(other, name))
        await StepWorker(other).handle(kept)
    await everything_once(store, name, ["a", "b", "c"])
    assert (await store.of(Workflows).get(name)).record.state == "completed"


async def test_a_hint_ahead_of_its_record_waits_for_it(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    (one,) = await fetch(store, queue)
    await coordinate(store, name)
    await put_raw(store, store.config.note("workflow", name, one.id), b"1 0 ended")
    assert await coordinate(store, name) == 1
    assert len(await hints(store, name)) == 1, "it is kept: the end may be on its way"
    assert (await store.of(Workflows).get(name)).record.states == "Rq."
    old = [hint._replace(at=hint.at - 61_000) for hint in await hints(store, name)]
    await StepWorker(store).handle(old)
    assert await hints(store, name) == [], "after a minute it never will"


async def test_a_lost_hint_is_made_good_by_a_recheck(store: Store, queue: str) -> None:
    name = await create(store, group(queue, "a", "b", "c"))
    await end(store, queue, number=3)
    for hint in await hints(store, name):
        await StepWorker(store).messages.done([hint])
    assert await store.of(Workflows).recheck(name) == 3
    assert (await store.of(Workflows).get(name)).record.state == "completed"
    assert await store.of(Workflows).recheck(name) == 0


async def test_a_workflow_looks_at_its_jobs_by_itself(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    await end(store, queue)
    for hint in await hints(store, name):
        await StepWorker(store).messages.done([hint])
    record = (await store.of(Workflows).get(name)).record
    assert record.timer is not None
    await store.of(Workflows).due(name, record.timer.at)
    after = (await store.of(Workflows).get(name)).record
    assert after.states == "Rcq"
    assert after.timer is not None
    assert after.timer.at > record.timer.at + 200_000
    (second,) = await fetch(store, queue)
    assert second.type == "b"


async def test_a_member_that_has_left_counts_as_failed(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    (one,) = await members(store, name)
    await store.nats.request(
        f"$JS.API.STREAM.PURGE.{store.config.records_stream}", f'{{"filter":"{store.config.job(one.id)}"}}'.encode()
    )
    assert await store.of(Workflows).recheck(name) == 1
    assert (await store.of(Workflows).get(name)).record.errors[0].code == "not_found"


async def test_a_timer_that_fires_early_is_set_again(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a"))
    before = (await store.of(Workflows).get(name)).record
    await store.of(Workflows).due(name, before.created_at)
    assert (await store.of(Workflows).get(name)).record == before
    assert before.timer is not None
    subject = Subjects(store.config).workflow_timer(name, before.timer.op)
    assert subject in await subjects(store, store.config.records_stream, subject)


async def test_two_coordinators_share_the_work_and_create_everything_once(
    nats_server: NatsServer, open_store: OpenStore
) -> None:
    store = await open_store(nats_server.url)
    coordinators = [Coordinator(await open_store(nats_server.url, role="coordinator")) for _ in range(2)]
    for coordinator in coordinators:
        await coordinator.start()
    names = []
    for number in range(12):
        definition = [
            chain("q", "a", "b", "c", "d"),
            group("q", "a", "b", "c"),
            batch("q", "a", "b", callbacks=("on_complete", "on_success")),
            {"type": "chain", "steps": [job("x", "q"), group("q", "a", "b"), chain("q", "c", "d"), job("y", "q")]},
        ][number % 4]
        names.append(await create(store, definition))

    async def all_have_ended() -> bool:
        await end(store, "q", number=20)
        return all([(await store.of(Workflows).get(name)).record.terminal for name in names])

    await eventually(all_have_ended)
    for coordinator in coordinators:
        await coordinator.stop()
    jobs = [len(await members(store, name)) for name in names]
    assert jobs == [4, 3, 4, 6] * 3
    for name in names:
        stored = await store.of(Workflows).get(name)
        assert stored.record.state == "completed"
        assert counts(stored.graph, stored.record).jobs_failed == 0
    assert await subjects(store, store.config.records_stream, store.config.notes("workflow")) == {}


async def test_nothing_of_a_workflow_is_left_after_a_reset(nats_server: NatsServer, open_store: OpenStore) -> None:
    store = await open_store(nats_server.url)
    name = await create(store, chain("q", "a", "b"))
    await end(store, "q")
    await coordinate(store, name)
    await store.reset(KINDS)
    kinds = ("workflow", "wfdef", "wfres")
    for kind in kinds:
        assert await store.records.subjects(store.config.record(kind, REST)) == []
    definition = chain("q", "c")
    definition["id"] = name
    await create(store, definition)
    assert [one.type for one in await fetch(store, "q", count=5)] == ["c"]


@pytest.fixture(scope="module")
def namespace() -> str:
    """The one that the subjects held here are of."""
    return DEFAULT_NAMESPACE


async def test_a_creation_in_portions_leaves_a_workflow_that_was_retried_meanwhile_to_the_retry(
    store: Store, other: Store, queue: str
) -> None:
    names = [f"n{number}" for number in range(CREATED_AT_ONCE + 1)]
    name = new_id()
    begun = job_id(name, 1, 0)
    jobs_written = other.config.job("")

    def dies_at_a_job(_send: Send, subject: str, *_request: Any) -> None:
        if subject.startswith(jobs_written):
            raise Crash(subject)

    async def retry_once() -> None:
        first = (await other.records.leader(begun)).job
        if first is None or first.terminal:
            return
        await other.of(Workflows).cancel(name)
        with tapped(other.nats, dies_at_a_job), pytest.raises(Crash):
            await other.of(Workflows).retry(name)

    with before(store.nats, reads_of(Subjects(store.config).workflow(name)), retry_once, times=9):
        await create(store, group(queue, *names) | {"id": name})
    record = (await store.of(Workflows).get(name)).record
    assert record.run == 1
    assert record.timer is not None
    await store.of(Workflows).due(name, record.timer.at)
    again = [one for one in await members(store, name) if one.workflow is not None and one.workflow.run == 1]
    assert sorted(one.type for one in again) == sorted(names), "whoever took up the retry created all of its jobs"
