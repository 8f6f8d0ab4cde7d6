"""Workflows on a real server, one coordinator, nothing in the way."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Raw

from integration.samples import ANYONE, fetch, message, refusal, subjects
from integration.workflows.flows import batch, chain, coordinate, create, end, finish, group, hints, job, members
from ojs_engine.base.ids import new_job_id
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.subjects import ANY, REST
from ojs_engine.store.store import Store
from ojs_features.workflows.record import counts, job_id
from ojs_features.workflows.results import ParentResults
from ojs_features.workflows.store import Workflows
from ojs_features.workflows.subjects import Subjects
from support.waiting import eventually


async def given(store: Store, job: Job) -> Any:
    """A fetched job's parent_results."""
    found = await store.of(Workflows).results.inputs([job])
    return [msgspec.json.decode(raw) for raw in found.get(job.id, ParentResults()).results]


async def test_a_chain_runs_in_order_and_hands_on_its_results(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b", "c", name="abc"))
    seen = []
    for _ in range(3):
        (one,) = await fetch(store, queue, count=5)
        assert one.workflow is not None
        seen.append((one.type, one.workflow.index, await given(store, one)))
        await store.jobs.change(
            one.id, lambda found, moment: transitions.ack(found, Raw(f'"{found.type}"'.encode()), ANYONE, moment)
        )
        await coordinate(store, name)
    assert seen == [("a", 0, []), ("b", 1, ["a"]), ("c", 2, ["a", "b"])]
    record = (await store.of(Workflows).get(name)).record
    assert (record.state, record.states, record.name) == ("completed", "Cccc", "abc")
    assert record.started_at is not None
    assert [entry.event for entry in record.log] == ["created", "started", "completed"]


async def test_the_first_claim_starts_the_workflow(store: Store, queue: str) -> None:
    name = await create(store, group(queue, "a", "b"))
    await fetch(store, queue, count=2)
    assert await coordinate(store, name) == 1, "the claim of one job is enough"
    record = (await store.of(Workflows).get(name)).record
    assert (record.log[-1].event, record.states) == ("started", "Rqq")
    assert await hints(store, name) == []


async def test_members_are_queued_in_the_order_of_their_definition(store: Store, queue: str) -> None:
    names = [f"t{number}" for number in range(40)]
    await create(store, group(queue, *names))
    assert [one.type for one in await fetch(store, queue, count=40)] == names


async def test_a_failed_step_ends_a_chain(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b", "c"))
    await end(store, queue)
    await coordinate(store, name)
    await end(store, queue, good=False)
    await coordinate(store, name)
    record = (await store.of(Workflows).get(name)).record
    assert (record.state, record.states) == ("failed", "Fcfx")
    assert (record.errors[0].message, record.errors[0].attempt) == ("no", 1)
    assert await fetch(store, queue) == []


async def test_many_ends_are_one_swap(store: Store, queue: str) -> None:
    name = await create(store, group(queue, *[f"t{number}" for number in range(50)]))
    before = (await store.of(Workflows).get(name)).sequence
    await end(store, queue, number=50)
    assert await coordinate(store, name) == 50
    stored = await store.of(Workflows).get(name)
    assert stored.record.state == "completed"
    # 50 times (creation, claim, timer, hint, end), the first claim's own hint, and one record with its timer
    assert stored.sequence - before <= 50 * 5 + 5


async def test_callbacks_get_all_results_and_decide_how_it_ends(store: Store, queue: str) -> None:
    name = await create(store, batch(queue, "a", "b", "c"))
    await end(store, queue, result=1)
    await end(store, queue, good=False)
    await end(store, queue, result=3)
    await coordinate(store, name)
    called = await fetch(store, queue, count=5)
    assert [one.type for one in called] == ["on.complete", "on.failure"]
    assert [await given(store, one) for one in called] == [[1, None, 3]] * 2
    for one in called:
        await store.jobs.change(one.id, lambda found, moment: transitions.ack(found, Raw(b"1"), ANYONE, moment))
    await coordinate(store, name)
    stored = await store.of(Workflows).get(name)
    assert (stored.record.state, counts(stored.graph, stored.record).jobs_failed) == ("completed", 1)


async def test_workflows_in_workflows_run_to_their_end(store: Store, queue: str) -> None:
    inner: dict[str, Any] = chain(queue, "deep", "deeper")
    for level in range(3):
        inner = {"type": "group", "jobs": [inner, job(f"beside{level}", queue)]}
        inner = {"type": "chain", "steps": [job(f"before{level}", queue), inner, job(f"after{level}", queue)]}
    name = await create(store, inner)
    stored = await finish(store, name, queue)
    assert stored.record.state == "completed"
    types = sorted(one.type for one in await members(store, name))
    assert types == sorted(
        ["deep", "deeper", *(f"{part}{level}" for level in range(3) for part in ("before", "after", "beside"))]
    )


async def test_a_nested_group_is_handed_on_as_one_object(store: Store, queue: str) -> None:
    definition = {"type": "chain", "steps": [job("a", queue), group(queue, "b", "c"), job("d", queue)]}
    name = await create(store, definition)
    for number in (1, 2):
        await end(store, queue, number=number)
        await coordinate(store, name)
    (last,) = await fetch(store, queue)
    assert await given(store, last) == [{"of": "a"}, [{"of": "b"}, {"of": "c"}]]


async def test_results_outlive_their_jobs(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    (first,) = await end(store, queue)
    await coordinate(store, name)
    store.nats.publish(
        f"$JS.API.STREAM.PURGE.{store.config.records_stream}",
        json.dumps({"filter": store.config.job(first.id)}).encode(),
        reply=store.nats.nobody,
    )
    store.of(Workflows).results.clear()
    (second,) = await fetch(store, queue)
    assert await given(store, second) == [{"of": "a"}]


async def test_what_is_too_much_to_hand_on_comes_by_reference(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, *[f"s{number}" for number in range(7)]))
    for _ in range(6):
        await end(store, queue, result="x" * 1_000_000)
        await coordinate(store, name)
    store.of(Workflows).results.clear()
    (last,) = await fetch(store, queue)
    handed = await given(store, last)
    assert [len(one) for one in handed[2:]] == [1_000_000] * 4, "the nearest ones are given"
    assert handed[:2] == [{"$ref": f"/ojs/v1/jobs/{job_id(name, node, 0)}/result"} for node in (1, 2)]


async def test_a_result_that_is_not_kept_for_clients_is_handed_on(store: Store, queue: str) -> None:
    steps = [job("a", queue, result_ttl=0), job("b", queue)]
    name = await create(store, {"type": "chain", "steps": steps})
    await end(store, queue, result=[5])
    await coordinate(store, name)
    (second,) = await fetch(store, queue)
    assert await given(store, second) == [[5]]


async def test_cancelling_withdraws_what_waits_and_lets_active_jobs_end(store: Store, queue: str) -> None:
    name = await create(store, group(queue, "a", "b", "c"))
    (active,) = await fetch(store, queue)
    stored = await store.of(Workflows).cancel(name)
    assert (stored.record.state, stored.record.cancelling) == ("cancelled", False)
    assert await fetch(store, queue, count=5) == []
    assert sorted(one.state for one in await members(store, name)) == [State.ACTIVE, State.CANCELLED, State.CANCELLED]
    await store.jobs.change(active.id, lambda found, moment: transitions.ack(found, Raw(b"1"), ANYONE, moment))
    await coordinate(store, name)
    assert (await store.of(Workflows).get(name)).record.states == "Xcxx"
    with refusal("conflict"):
        await store.of(Workflows).cancel(name)


async def test_a_cancelled_step_is_not_created_by_a_slower_coordinator(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    await end(store, queue)
    late = await hints(store, name)
    await store.of(Workflows).cancel(name)
    await coordinate(store, name)
    assert late
    assert await fetch(store, queue, count=5) == []
    assert (await store.of(Workflows).get(name)).record.states == "Xcx"


async def test_a_member_cancelled_by_itself_counts_as_failed(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    (only,) = await members(store, name)
    await store.jobs.change(only.id, transitions.cancel)
    await coordinate(store, name)
    record = (await store.of(Workflows).get(name)).record
    assert (record.state, record.errors[0].code) == ("failed", "cancelled")


async def test_a_retry_goes_on_from_the_failed_step_with_new_jobs(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b", "c"))
    await end(store, queue)
    await coordinate(store, name)
    await end(store, queue, good=False)
    await coordinate(store, name)
    with refusal("conflict"):
        await store.of(Workflows).cancel(name)
    await store.of(Workflows).retry(name)
    (again,) = await fetch(store, queue, count=5)
    assert (again.type, await given(store, again)) == ("b", [{"of": "a"}])
    await store.jobs.change(again.id, lambda found, moment: transitions.ack(found, Raw(b"2"), ANYONE, moment))
    stored = await finish(store, name, queue)
    assert (stored.record.state, stored.record.states, stored.record.runs) == ("completed", "Cccc", "0011")
    assert sorted(one.type for one in await members(store, name)) == ["a", "b", "b", "c"]
    with refusal("conflict"):
        await store.of(Workflows).retry(name)


async def test_a_cancelled_workflow_goes_on_after_a_retry(store: Store, queue: str) -> None:
    name = await create(store, group(queue, "a", "b", "c"))
    await end(store, queue)
    await store.of(Workflows).cancel(name)
    await store.of(Workflows).retry(name)
    stored = await finish(store, name, queue)
    assert (stored.record.state, stored.record.runs) == ("completed", "0011")


async def test_an_id_is_taken_once(store: Store, queue: str) -> None:
    name = new_job_id(store.clock.now())
    await create(store, chain(queue, "a", id=name))
    with refusal("duplicate"):
        await create(store, chain(queue, "b", id=name))
    assert [one.type for one in await fetch(store, queue, count=5)] == ["a"]


async def test_an_ended_workflow_leaves_when_its_time_is_over(store: Store, queue: str) -> None:
    name = await create(store, chain(queue, "a", "b"))
    await finish(store, name, queue)
    record = (await store.of(Workflows).get(name)).record
    found = await message(store, Subjects(store.config).workflow(name))
    assert found is not None
    assert int(found[1]["Nats-TTL"].removesuffix("s")) == 7 * 86_400 + 3_600
    assert record.timer is not None
    stream = store.config.records_stream
    assert list(await subjects(store, stream, Subjects(store.config).workflow_timer(name, ANY))) == [
        Subjects(store.config).workflow_timer(name, record.timer.op)
    ], "one timer is left, the one that cleans up"
    await store.of(Workflows).due(name, record.timer.at)

    async def nothing_left() -> bool:
        kept = await subjects(store, stream, Subjects(store.config).definition(name, "", REST))
        return not kept and not await subjects(store, stream, Subjects(store.config).step_result(name, "", REST))

    await eventually(nothing_left)
    with refusal("not_found"):
        await store.of(Workflows).get(name)


async def test_a_relative_delay_counts_from_the_step_and_not_from_the_workflow(store: Store, queue: str) -> None:
    name = await create(store, {"type": "chain", "steps": [job("a", queue), job("b", queue, delay_until="+PT60S")]})
    await end(store, queue)
    before = store.clock.now()
    await coordinate(store, name)
    second = next(one for one in await members(store, name) if one.type == "b")
    assert second.state is State.SCHEDULED
    assert second.scheduled_at is not None
    assert second.scheduled_at - before >= 60_000


async def test_jobs_outside_of_workflows_hint_nothing(store: Store, queue: str) -> None:
    del queue
    before = await subjects(store, store.config.records_stream, f"{store.config.namespace}.step.>")
    pushed = await store.enqueue.push(Job(id=new_job_id(1), type="x", args=Raw(b"[]"), state=State.AVAILABLE, queue="plain"))
    await fetch(store, "plain")
    await store.jobs.change(pushed.id, transitions.cancel)
    assert await subjects(store, store.config.records_stream, f"{store.config.namespace}.step.>") == before
