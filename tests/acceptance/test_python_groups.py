"""What handlers raise in an ExceptionGroup, and what they start in task groups, as a worker of the test's process has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ojs_nats import App, JobContext, JobFailed, Retry, Snooze, Worker
from ojs_nats.worker import DeadLetter, Discard
from ojs_nats.worker._lifecycle import Trigger
from support.system import System

app = App("http://127.0.0.1:1")
"""Its address is the system's in each test."""
AGAIN = Retry(3, initial_interval="10ms", jitter=False, non_retryable_errors=["LookupError"])
NESTED = {"Discard": Discard("no"), "DeadLetter": DeadLetter("no"), "LookupError": LookupError("no")}


@app.job("g.final", queue="g", retry=AGAIN)
async def final(name: str) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(raising(name))


async def raising(name: str) -> None:
    raise ExceptionGroup("nested", [NESTED[name], ValueError("other")])


@app.job("g.snoozed", queue="g", retry=AGAIN)
async def snoozed(ctx: JobContext) -> int:
    if not ctx.job.uncounted_attempts:
        raise ExceptionGroup("busy", [Snooze("10ms"), Snooze("20ms")])
    return ctx.job.uncounted_attempts


@pytest.fixture(params=["HTTP", "NATS"])
async def started(system: System, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> AsyncIterator[App]:
    """The app, while a worker runs its jobs."""
    monkeypatch.setattr(app, "url", system.url if request.param == "HTTP" else system.nats_url)
    worker = Worker(app, queues=["g"], fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with app:
        yield app
    worker.notify(Trigger.SIGINT)
    await running


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("name", NESTED)
async def test_an_error_in_a_group_ends_the_job(name: str) -> None:
    handle = await final.push(name)
    with pytest.raises(JobFailed, match="after 1 attempts"):
        await handle.result("30s")


@pytest.mark.usefixtures("started")
async def test_a_group_of_snoozes_puts_the_job_off() -> None:
    handle = await snoozed.push()
    assert await handle.result("30s") == 1
