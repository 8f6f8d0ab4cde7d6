"""What a worker of the test's own process hands to its handlers, and what middleware may call, over HTTP and NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

import pytest

from ojs_nats import App, Depends, Worker
from ojs_nats.chains import EnqueueNext
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._lifecycle import Trigger
from support.system import System

app = App("http://127.0.0.1:1")
"""Its address is the system's in each test."""
tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


def of_a_tenant() -> Iterator[str]:
    token = tenant.set("ada")
    yield "plain"
    tenant.reset(token)


async def of_another_tenant() -> AsyncIterator[str]:
    token = tenant.set("bob")
    yield "async"
    tenant.reset(token)


@app.job("i.plain", queue="i")
def plain(*, how: str = Depends(of_a_tenant)) -> str:
    return f"{tenant.get()} by {how}"


@app.job("i.async", queue="i")
async def asynchronous(*, how: str = Depends(of_another_tenant)) -> str:
    return f"{tenant.get()} by {how}"


@app.job("i.mixed", queue="i")
async def mixed(*, how: str = Depends(of_a_tenant)) -> str:
    return f"{tenant.get()} by {how}"


@pytest.fixture(params=["HTTP", "NATS"])
async def started(system: System, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> AsyncIterator[App]:
    """The app, while a worker runs its jobs."""
    monkeypatch.setattr(app, "url", system.url if request.param == "HTTP" else system.nats_url)
    worker = Worker(app, queues=["i"], fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with app:
        yield app
    worker.notify(Trigger.SIGINT)
    await running


async def test_context_variables_of_dependencies_reach_the_handler(started: App) -> None:
    pushed = [await each.push() for each in (plain, asynchronous, mixed)]
    assert [await handle.result("30s") for handle in pushed] == ["ada by plain", "bob by async", "ada by plain"]
    assert started.codec is None


async def test_a_call_without_await_in_the_loop_of_such_calls_is_refused_and_doesn_t_hang(started: App) -> None:
    async def pushes_another(new: JobRequest[object], next: EnqueueNext) -> JobRequest[object] | None:
        with pytest.raises(RuntimeError, match="a call without await can't be made by what runs in the loop of such calls"):
            mixed.push_sync()
        return await next(new)

    middleware = started.enqueue.add(pushes_another)
    try:
        async with asyncio.timeout(30):
            handle = await asyncio.to_thread(plain.push_sync)
            assert await asyncio.to_thread(handle.result, "30s") == "ada by plain"
    finally:
        started.enqueue.remove(middleware.__name__)
        await asyncio.to_thread(started.sync.close)


async def test_a_call_without_await_beside_a_running_loop_is_answered(started: App) -> None:
    """It blocks the loop meanwhile, as any call that waits does."""
    handle = plain.push_sync()
    try:
        assert (await started.client.jobs.get(handle.id)).type == "i.plain"
    finally:
        await asyncio.to_thread(started.sync.close)
