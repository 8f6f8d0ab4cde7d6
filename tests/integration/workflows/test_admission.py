"""What queues and uniqueness ask of the jobs of workflows (docs/adr/011)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw

from integration.samples import draft, fetch, refusal, set_up, timed, tokens
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
    job,
    members,
)
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Retry, State
from ojs_engine.domain.unique import keyed
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.store import Store
from ojs_features.unique.timings import LockTimings
from ojs_features.workflows.store import Workflows
from ojs_features.workflows.subjects import Subjects
from support.waiting import eventually

UNIQUE = {"keys": ["type", "args", "queue"]}
ANYWHERE = {"keys": ["type", "args"]}


async def refused(store: Store, definition: dict[str, Any]) -> OjsError:
    before = await store.records.subjects(Subjects(store.config).workflow(ANY))
    with pytest.raises(OjsError) as caught:
        await create(store, definition)
    assert await store.records.subjects(Subjects(store.config).workflow(ANY)) == before
    return caught.value


async def test_every_job_gets_what_it_leaves_to_its_queue(store: Store, queue: str) -> None:
    await set_up([store], queue, default_timeout_ms=7_000, visibility_timeout_ms=9_000, default_retry=Retry(max_attempts=9))
    definition = batch(queue, "a", "b", callbacks=("on_success",))
    definition["jobs"][0]["options"] |= {"timeout_ms": 1_000}
    name = await create(store, {"type": "chain", "steps": [definition, job("last", queue)]})
    await finish(store, name, queue)
    found = {
        one.type: (one.timeout_ms, one.visibility_timeout_ms, one.retry.max_attempts) for one in await members(store, name)
    }
    assert found == {
        "a": (1_000, 9_000, 1),
        "b": (7_000, 9_000, 1),
        "on.success": (7_000, 9_000, 9),
        "last": (7_000, 9_000, 9),
    }


async def test_a_type_that_a_queue_does_not_take_refuses_the_workflow_by_place(store: Store, queue: str) -> None:
    await set_up([store], queue, allowed_job_types=("ok.*",))
    nested = {"type": "chain", "steps": [job("ok.a", queue), group(queue, "ok.b", "bad.c")]}
    error = await refused(store, nested)
    assert error.code == "job_type_not_allowed"
    assert error.details["field"] == "$.steps[1].jobs[1]"
    assert (error.details["queue"], error.details["type"]) == (queue, "bad.c")
    assert "$.steps[1].jobs[1]" in error.message
    assert await tokens(store, queue) == 0


async def test_first_jobs_take_places_and_later_ones_are_never_refused(store: Store, queue: str) -> None:
    await set_up([store], queue, max_size=3)
    name = await create(store, {"type": "chain", "steps": [group(queue, "a", "b"), group(queue, "c", "d")]})
    error = await refused(store, group(queue, "x", "y"))
    assert (error.code, error.retry_after) == ("queue_full", 1)
    await store.enqueue.push(draft(queue=queue))
    assert (await refused(store, chain(queue, "x", "y"))).code == "queue_full"
    done = await end(store, queue, number=3)
    assert [one.type for one in done[:2]] == ["a", "b"]
    for _ in range(3):
        await store.enqueue.push(draft(queue=queue))
    await coordinate(store, name)
    assert await tokens(store, queue) == 5  # what was accepted goes on
    with refusal("queue_full"):
        await store.enqueue.push(draft(queue=queue))


async def test_the_bound_holds_for_workflows_and_pushes_together(store: Store, other: Store, queue: str) -> None:
    for one in (store, other):
        await one.queues.settings(queue)
    await set_up([store], queue, max_size=20)
    await eventually(lambda: other.queues.bound(queue) == 20)

    async def attempt(number: int, one: Store) -> int:
        try:
            if number % 2:
                await one.enqueue.push(draft(queue=queue))
                return 1
            await create(one, group(queue, "a", "b", "c"))
        except OjsError as error:
            if error.code != "queue_full":
                raise
            return 0
        return 3

    taken = await asyncio.gather(*(attempt(number, one) for number in range(12) for one in (store, other)))
    assert 18 <= sum(taken) <= 20
    assert len(await fetch(store, queue, count=50)) == sum(taken)


# Unique members


async def test_a_first_job_that_is_not_unique_refuses_the_workflow(store: Store, queue: str) -> None:
    await create(store, {"type": "chain", "steps": [job("a", queue, unique=UNIQUE), job("b", queue)]})
    again = {"type": "group", "jobs": [job("c", queue), job("a", queue, unique=UNIQUE)]}
    error = await refused(store, again)
    assert (error.code, error.details["field"]) == ("duplicate", "$.jobs[1]")
    assert error.details["existing_job_state"] == "available"
    twins = {"type": "group", "jobs": [job("d", queue, unique=UNIQUE), job("d", queue, unique=UNIQUE)]}
    assert (await refused(store, twins)).details["field"] == "$.jobs[1]"


async def test_a_members_fingerprint_is_held_while_it_lives(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", options={"unique": UNIQUE}))
    same = keyed(draft(type="a", queue=queue, args=Raw(b'["a"]'), unique=Raw(json.dumps(UNIQUE).encode())))
    with refusal("duplicate"):
        await store.enqueue.push(same)
    await finish(store, name, queue)
    await store.enqueue.push(same)


async def test_a_later_job_that_is_not_unique_fails_its_step(store: Store, queue: str) -> None:
    steps = [job("a", queue), job("b", queue, unique=UNIQUE), job("c", queue)]
    name = await create(store, {"type": "chain", "steps": steps})
    mine = keyed(draft(type="b", queue=f"{queue}.x", args=Raw(b'["b"]'), unique=Raw(json.dumps(UNIQUE).encode())))
    mine = await store.enqueue.push(mine)
    elsewhere = {"type": "chain", "steps": [job("a", queue), job("b", f"{queue}.x", unique=UNIQUE), job("c", queue)]}
    blocked = await create(store, elsewhere)
    assert (await finish(store, name, queue)).record.state == "completed"
    await coordinate(store, blocked)
    await coordinate(store, blocked)
    record = (await store.of(Workflows).get(blocked)).record
    assert record.state == "failed"
    assert [(error.code, error.step) for error in record.errors] == [("duplicate", "1")]
    [never] = [one for one in await members(store, blocked) if one.type == "b"]
    assert (never.state, never.attempt, never.unique_key) == (State.DISCARDED, 0, None)
    assert (await store.jobs.get(mine.id)).state is State.AVAILABLE


async def test_a_member_may_replace_a_job(store: Store, queue: str) -> None:
    policy = UNIQUE | {"on_conflict": "replace"}
    mine = keyed(draft(type="a", queue=queue, args=Raw(b'["a"]'), unique=Raw(json.dumps(policy).encode())))
    await store.enqueue.push(mine)
    await create(store, chain(queue, "a", options={"unique": policy}))
    assert (await store.jobs.get(mine.id)).state is State.CANCELLED


async def test_a_member_cannot_be_ignored(store: Store, queue: str) -> None:
    error = await refused(store, chain(queue, "a", options={"unique": UNIQUE | {"on_conflict": "ignore"}}))
    assert error.code == "invalid_workflow"
    assert error.details["field"] == "$.steps[0].options.unique.on_conflict"


@timed(features=(LockTimings(young_ms=50),))
@pytest.mark.parametrize("taken", [False, True], ids=["free", "taken meanwhile"])
async def test_unique_steps_are_created_once_whatever_dies(store: Store, other: Store, queue: str, taken: bool) -> None:
    for after in range(40):
        here = f"{queue}.{after}"
        only = f"b-{here}".replace(".", "-")
        steps = [job("a", here), job(only, here, unique=ANYWHERE), job("c", here)]
        name = await create(store, {"type": "chain", "steps": steps})
        await end(store, here)
        died = False
        with crashing(store, after):
            try:
                await coordinate(store, name)
            except Crash:
                died = True
        rival = taken and await pushed(other, only, f"{here}.elsewhere")
        stored = await finish(other, name, here)
        types = sorted(one.type for one in await members(other, name))
        if rival:
            assert (stored.record.state, types) == ("failed", ["a", only])
        else:
            assert (stored.record.state, types) == ("completed", ["a", only, "c"])
        assert all(one.attempt <= 1 for one in await members(other, name))
        if not died:
            return
    raise AssertionError("it never came to its end")


async def pushed(store: Store, name: str, queue: str) -> bool:
    """Push the same as a unique step; whether it was accepted."""
    policy = Raw(json.dumps(ANYWHERE).encode())
    try:
        await store.enqueue.push(keyed(draft(type=name, queue=queue, args=Raw(json.dumps([name]).encode()), unique=policy)))
    except OjsError as error:
        if error.code != "duplicate":
            raise
        return False
    return True
