"""Workflows that are composed in Python, run by a worker of the test's process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest

from ojs_nats import App, JobContext, Retry, Worker, batch, chain, group
from ojs_nats.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    WaitTimeoutError,
    WorkflowCancelled,
    WorkflowFailed,
)
from ojs_nats.worker._lifecycle import Trigger
from ojs_nats.workflows import Dag
from support.system import System

app = App("http://127.0.0.1:1")
"""Its address is the system's in each test."""
failing: set[str] = set()


@app.job("w.add", queue="w")
async def add(ctx: JobContext, number: int) -> int:
    """The number and what the step before has come to; a group's results are a list."""
    before = (ctx.parent_results or [0])[-1]
    return number + (sum(before) if isinstance(before, list) else int(before))


@app.job("w.gather", queue="w")
async def gather(ctx: JobContext, name: str) -> list[Any]:
    return [name, *(ctx.parent_results or [])]


@app.job("w.indexed", queue="w")
async def indexed(ctx: JobContext) -> Any:
    return ctx.parent_results_by_index


@app.job("w.day", queue="w")
async def day() -> date:
    return date(2026, 11, 24)


@app.job("w.fail", queue="w", retry=Retry(1))
async def fail(name: str) -> str:
    if name in failing:
        raise ValueError(f"{name} doesn't want to")
    return name


@app.job("w.large", queue="w")
async def large(letter: str) -> str:
    return letter * (2**20 - 2)


@app.job("w.lengths", queue="w")
def lengths(ctx: JobContext) -> list[tuple[str, int]]:
    return [(result[0], len(result)) for result in ctx.parent_results]


@app.job("w.never", queue="nobody-s")
async def never() -> int:
    return 0


both_ways = pytest.mark.parametrize("started", ["HTTP", "NATS"], indirect=True)
"""For tests that show every day that both ways serve workflows; the others go by NATS in the slow lane."""


@pytest.fixture(params=["HTTP", pytest.param("NATS", marks=pytest.mark.slow)])
async def started(system: System, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> AsyncIterator[App]:
    """The app, while a worker runs its jobs."""
    monkeypatch.setattr(app, "url", system.url if request.param == "HTTP" else system.nats_url)
    failing.clear()
    worker = Worker(app, queues=["w"], fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with app:
        yield app
    worker.notify(Trigger.SIGINT)
    await running


@both_ways
async def test_a_chain_hands_its_results_on(started: App) -> None:
    workflows = started.client.workflows
    handle = await workflows.start(chain(add.job(1), group(add.job(10), add.job(20)), add.job(100)).named("sums"))
    assert await handle.result("30s") == 100 + 11 + 21
    assert await handle.state() == "completed"
    assert (await handle.progress()).progress == 1
    assert [job.result async for job in handle.jobs()] == [1, 11, 21, 132]
    found = await workflows.get(handle.id)
    assert (found.name, found.type, found.metadata.job_count) == ("sums", "chain", 4)
    assert [one.id async for one in workflows.list(state="completed")] == [handle.id]
    assert await (await workflows.start(chain(add.job(1), day.job()))).result("30s") == date(2026, 11, 24)
    by_index = {"0": 1, "1": {"0": 3, "1": 4}}
    given = await workflows.start(chain(add.job(1), group(add.job(2), add.job(3)), indexed.job()))
    assert await given.result("30s") == by_index


async def test_a_handler_reads_earlier_results_in_the_shapes_that_the_guide_names(started: App) -> None:
    inner = Dag("inner")
    before = [inner.add(fail.job("a"), id="first"), inner.add(fail.job("b"), id="second")]
    inner.add(fail.job("c"), after=before, id="third")
    flows = {
        "a chain": chain(fail.job("a"), fail.job("b"), gather.job("of")),
        "a group in a chain": chain(group(fail.job("a"), fail.job("b")), gather.job("of")),
        "a Dag in a chain": chain(inner, gather.job("of")),
    }
    given = {name: await (await started.client.workflows.start(flow)).result("30s") for name, flow in flows.items()}
    assert given == {
        "a chain": ["of", "a", "b"],
        "a group in a chain": ["of", ["a", "b"]],
        "a Dag in a chain": ["of", {"first": "a", "second": "b", "third": "c"}],
    }
    flow = Dag("outer")
    first, second = flow.add(fail.job("a")), flow.add(fail.job("b"))
    flow.add(gather.job("of"), after=[second, first], id="last")
    assert (await (await started.client.workflows.start(flow)).result("30s"))["last"] == ["of", "b", "a"]


async def test_a_step_is_given_results_for_which_its_job_had_no_room(started: App) -> None:
    handle = await started.client.workflows.start(chain(*(large.job(letter) for letter in "abcdef"), lengths.job()))
    assert await handle.result("60s") == [(letter, 2**20 - 2) for letter in "abcdef"]


async def test_a_group_s_result_is_a_list(started: App) -> None:
    handle = await started.client.workflows.start(group(*(add.job(n) for n in range(30)), chain(add.job(1), add.job(1))))
    assert await handle.result("30s") == [*range(30), 2]


async def test_a_batch_calls_back_and_is_content_with_failures(started: App) -> None:
    failing.add("b")
    flow = batch(fail.job("a"), fail.job("b"), on_complete=gather.job("all"), on_failure=gather.job("some failed"))
    handle = await started.client.workflows.start(flow)
    assert await handle.result("30s") == ["a", None]
    assert [job.result async for job in handle.jobs()][2:] == [["all", "a", None], ["some failed", "a", None]]


async def test_a_dag_runs_each_step_after_those_that_it_needs(started: App) -> None:
    flow = Dag("report")
    first, second = flow.add(add.job(1)), flow.add(group(add.job(2), add.job(3)))
    both = flow.add(gather.job("both"), after=[first, second], id="both")
    flow.add(gather.job("last"), after=[both], id="last")
    flow.add(gather.job("alarm"), after=[both], when="failure")
    result = await (await started.client.workflows.start(flow)).result("30s")
    assert result["both"][:2] == ["both", 1]
    assert result["last"] == ["last", result["both"]]
    assert result.keys() == {"0", "1", "both", "last"}


@both_ways
async def test_a_failure_is_an_error_and_can_be_retried(started: App) -> None:
    failing.add("b")
    handle = await started.client.workflows.start(chain(fail.job("a"), fail.job("b"), fail.job("c")))
    with pytest.raises(WorkflowFailed, match="b doesn't want to") as failed:
        await handle.result("30s")
    assert failed.value.errors[0].step_id == "1"
    failing.clear()
    await handle.retry()
    assert await handle.result("30s") == "c"
    with pytest.raises(ConflictError):
        await handle.retry()


async def test_a_workflow_is_cancelled(started: App) -> None:
    handle = await started.client.workflows.start(group(never.job(), never.job()))
    with pytest.raises(WaitTimeoutError):
        await handle.result("200ms")
    waiting = asyncio.create_task(handle.result("30s"))
    assert (await handle.cancel()).steps_cancelled == 2
    with pytest.raises(WorkflowCancelled):
        await waiting
    with pytest.raises(ConflictError):
        await handle.cancel()


async def test_the_same_start_again_is_the_same_workflow(started: App) -> None:
    workflows = started.client.workflows
    first = await workflows.start(chain(never.job()), defaults={"priority": 5})
    again = await workflows.start(chain(never.job()), id=first.id)
    assert again.id == first.id
    assert [one.id async for one in workflows.list()] == [first.id]
    [job] = [job async for job in first.jobs()]
    assert job.priority == 5
    with pytest.raises(NotFoundError):
        await workflows.get("019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f")
    with pytest.raises(InvalidRequestError):
        await workflows.start(chain(never.job()), id="mine")


@both_ways
async def test_events_of_a_workflow(started: App) -> None:
    after = await started.client.events.cursor()
    handle = await started.client.workflows.start(chain(add.job(1), add.job(2)))
    other = await started.client.workflows.start(chain(add.job(1)))
    await asyncio.gather(handle.result("30s"), other.result("30s"))
    told: list[str] = []
    async for event in started.client.events(workflow_id=handle.id, after=after):
        assert event.data["workflow_id"] == handle.id
        told.append(event.type)
        if event.type == "workflow.completed":
            break
    assert told.count("workflow.step_completed") == 2


@pytest.mark.slow
async def test_large_ones_are_read_in_pages(started: App) -> None:
    """Of 1,000 steps. What a result is made of is read so, too."""
    number = 1_010
    handle = await started.client.workflows.start(group(*(never.job() for _ in range(number))))
    steps = (await started.client.workflows.get(handle.id)).steps
    assert [step.id for step in steps] == [str(place) for place in range(number)]
    assert len({step.job_id for step in steps}) == number
