"""Creations that are slow, cut off, repeated and overtaken: what was acknowledged runs, whichever guard fires when."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from integration.samples import acked, fetch, holding, losing_answers, new_id, put_raw, refusal, set_up
from integration.workflows.flows import Crash, chain, coordinate, crashing, create, end, finish, members
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, REST
from ojs_engine.store.store import Store
from ojs_features.workflows.advance import begin
from ojs_features.workflows.requests import parse_workflow
from ojs_features.workflows.store import Workflows
from ojs_features.workflows.subjects import Subjects
from support.outside import clock_of

OPEN_MS = 5_000
"""How long the claim of a request that may still be at it is respected."""
GIVEN_UP_MS = 60_000


async def definitions(store: Store, name: str) -> list[str]:
    return await store.records.subjects(Subjects(store.config).definition(name, "", REST))


async def cut_off(store: Store, definition: dict[str, Any], after: int) -> None:
    """A first request whose gateway dies before its write number `after`, which is that of the record or one ahead of it."""
    with crashing(store, after), pytest.raises(Crash):
        await create(store, definition)


@pytest.mark.parametrize(("place", "number"), [(".shape", 1), (".0", 1), ("", 2)])
async def test_a_creation_that_outlives_its_guard_is_a_workflow(
    store: Store, other: Store, queue: str, place: str, number: int
) -> None:
    """Its definition, or its record, is still on its way when the guard fires."""
    definition = chain(queue, "a", "b", id=new_id())
    name = definition["id"]
    with holding(store.nats, place or Subjects(store.config).workflow(name), number) as held:
        creation = asyncio.create_task(create(store, definition))
        await held.met(creation)
        await other.of(Workflows).due(name, other.clock.now() + 10_000)
        held.go.set()
        await creation
    assert (await other.of(Workflows).get(name)).record.state == "running"
    await finish(other, name, queue)
    assert sorted(one.type for one in await members(other, name)) == ["a", "b"]


async def test_a_creation_that_was_given_up_fails_and_leaves_nothing(store: Store, other: Store, queue: str) -> None:
    definition = chain(queue, "a", "b", id=new_id())
    name = definition["id"]
    with holding(store.nats, Subjects(store.config).workflow(name), 2) as held:
        creation = asyncio.create_task(create(store, definition))
        await held.met(creation)
        await other.of(Workflows).due(name, other.clock.now() + GIVEN_UP_MS + 10_000)
        assert await definitions(other, name) == []
        held.go.set()
        with refusal("backend_unavailable"):
            await creation
    with refusal("not_found"):
        await other.of(Workflows).get(name)
    await create(other, definition)
    await finish(other, name, queue)


async def test_the_guard_of_a_dead_try_leaves_the_next_ones_definition(store: Store, other: Store, queue: str) -> None:
    definition = chain(queue, "a", "b", id=new_id())
    name = definition["id"]
    await cut_off(store, definition, 1)  # its timer is there, no more
    with holding(other.nats, Subjects(other.config).workflow(name), 2) as held:
        creation = asyncio.create_task(create(other, definition))
        await held.met(creation)
        await store.of(Workflows).due(name, store.clock.now() + 10_000)
        held.go.set()
        await creation
    assert (await store.of(Workflows).get(name)).record.state == "running"
    await finish(store, name, queue)


@pytest.mark.parametrize("after", [2, 3, 4])
async def test_a_repeated_request_is_told_to_wait_and_then_creates_the_workflow(
    store: Store, other: Store, queue: str, after: int
) -> None:
    definition = chain(queue, "a", "b", id=new_id())
    name = definition["id"]
    await cut_off(store, definition, after)
    with pytest.raises(OjsError) as refused:
        await create(other, definition)
    assert refused.value.info.status == 503, "it may come to be, but it isn't there"
    assert 1 <= (refused.value.retry_after or 0) <= OPEN_MS // 1_000
    clock_of(other).ahead_ms += OPEN_MS
    await create(other, definition)
    with refusal("duplicate"):
        await create(other, definition)
    clock_of(other).ahead_ms = 0
    await other.of(Workflows).due(name, other.clock.now() + GIVEN_UP_MS)  # the dead try's guard
    await finish(other, name, queue)
    assert sorted(one.type for one in await members(other, name)) == ["a", "b"]


async def test_of_two_requests_the_one_that_was_overtaken_says_what_is_there(store: Store, other: Store, queue: str) -> None:
    definition = chain(queue, "a", "b", id=new_id())
    name = definition["id"]
    with holding(store.nats, Subjects(store.config).workflow(name), 2) as held:
        slow = asyncio.create_task(create(store, definition))
        await held.met(slow)
        clock_of(other).ahead_ms += OPEN_MS
        await create(other, definition)
        held.go.set()
        with refusal("duplicate"):
            await slow
    clock_of(other).ahead_ms = 0
    await finish(other, name, queue)
    assert sorted(one.type for one in await members(other, name)) == ["a", "b"]


async def test_many_requests_with_one_id_make_one_workflow(store: Store, other: Store, queue: str) -> None:
    definition = chain(queue, "a", id=new_id())
    name = definition["id"]
    outcomes = await asyncio.gather(
        *(create(one, definition) for one in (store, other) for _ in range(10)), return_exceptions=True
    )
    assert outcomes.count(name) == 1
    codes = {outcome.code for outcome in outcomes if isinstance(outcome, OjsError)}
    assert codes <= {"duplicate", "backend_unavailable"}
    await finish(other, name, queue)
    assert [one.type for one in await members(other, name)] == ["a"]


async def test_a_workflow_that_runs_is_told_of_even_if_its_queue_is_full(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=1)
    definition = chain(queue, "a", id=new_id())
    await create(store, definition)
    with refusal("duplicate"):
        await create(store, definition)


@pytest.mark.parametrize("place", [1, 2])
async def test_a_creation_whose_answers_are_lost_is_a_workflow(store: Store, queue: str, place: int) -> None:
    definition = chain(queue, "a", id=new_id())
    with losing_answers(store.nats, Subjects(store.config).workflow(definition["id"]), place) as lost:
        name = await create(store, definition)
    assert len(lost) == place
    await finish(store, name, queue)


async def test_what_a_dead_try_wrote_is_cleared_away(store: Store, other: Store, queue: str) -> None:
    definition = chain(queue, "a", "b", id=new_id())
    name = definition["id"]
    await cut_off(store, definition, 4)
    assert len(await definitions(other, name)) == 2
    await other.of(Workflows).due(name, other.clock.now() + 10_000)
    assert len(await definitions(other, name)) == 2, "somebody may still be at it"
    await other.of(Workflows).due(name, other.clock.now() + GIVEN_UP_MS + 10_000)
    assert await definitions(other, name) == []
    with refusal("not_found"):
        await other.of(Workflows).get(name)


async def test_a_retry_in_the_moment_when_a_workflow_leaves_is_kept_or_refused(store: Store, other: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    await end(store, queue, good=False)
    await coordinate(store, name)
    record = (await store.of(Workflows).get(name)).record
    assert record.timer is not None
    with holding(other.nats, Subjects(other.config).workflow(name)) as held:
        leaving = asyncio.create_task(other.of(Workflows).due(name, record.timer.at))
        await held.met(leaving)
        await store.of(Workflows).retry(name)
        held.go.set()
        with refusal("backend_unavailable"):  # the timer's message comes again, and finds a workflow that runs
            await leaving
    assert (await store.of(Workflows).get(name)).record.state == "running"
    assert (await finish(store, name, queue)).record.state == "completed"


async def test_a_workflow_that_an_earlier_version_stored_runs_on(store: Store, queue: str) -> None:
    """Its definition and results have no op in their subjects."""
    name = new_id()
    body = json.dumps(chain(queue, "a", "b", id=name)).encode()
    definition = parse_workflow(body, store.clock.now(), DEFAULT_LIMITS)
    record = replace(begin(definition.graph, name, "", store.clock.moment()), definition="")
    for part, content in store.of(Workflows)._definitions.parts(definition).items():
        await put_raw(store, f"$KV.{store.config.bucket}.wfdef.{name}.{part}", content)
    await put_raw(store, Subjects(store.config).workflow(name), msgspec.json.encode(record))
    assert record.timer is not None
    await store.of(Workflows).due(name, record.timer.at)
    await end(store, queue, result=7)
    await coordinate(store, name)
    (second,) = await fetch(store, queue)
    assert (await store.of(Workflows).results.inputs([second]))[second.id].results == [Raw(b"7")]
    await store.jobs.change(second.id, acked)
    await coordinate(store, name)
    ended = (await store.of(Workflows).get(name)).record
    assert ended.state == "completed"
    assert ended.timer is not None
    await store.of(Workflows).due(name, ended.timer.at)
    assert await definitions(store, name) == []
    assert await store.records.subjects(Subjects(store.config).step_result(name, "", REST)) == []


@pytest.fixture(scope="module")
def namespace() -> str:
    """The one that the subjects held here are of."""
    return DEFAULT_NAMESPACE
