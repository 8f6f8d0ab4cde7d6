"""Answers that get lost between the Python client and the server: what is asked again, and that nothing is done twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from aiohttp import web

from ojs_nats import Client, group
from ojs_nats.errors import ConflictError, UnavailableError
from ojs_nats.jobs import JobRequest
from support.system import System


class Losing:
    """Hands requests to a server, and loses the answers to the first ones that `lost` names."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.lost: Callable[[web.Request], bool] = lambda _request: False
        self.left = 0
        self.asked: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request.method + request.path)
        async with aiohttp.ClientSession(self._url) as session:
            body = await request.read()
            async with session.request(request.method, request.path_qs, data=body, headers=request.headers) as answer:
                told = await answer.read()
        if self.left and self.lost(request):
            self.left -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=answer.status, body=told, content_type="application/json")

    def lose(self, method: str, path: str, number: int = 1) -> None:
        self.left, self.asked = number, []
        self.lost = lambda request: request.method == method and request.path.startswith(f"/ojs/v1{path}")


@pytest.fixture
async def losing(system: System) -> AsyncIterator[tuple[Losing, Client]]:
    proxy = Losing(system.url)
    runner = web.AppRunner(application := web.Application())
    application.router.add_route("*", "/{path:.*}", proxy.handle)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with Client(f"http://127.0.0.1:{runner.addresses[0][1]}", retry_for="10s") as client:
        yield proxy, client
    await runner.cleanup()


def new(*args: int) -> JobRequest[None]:
    return JobRequest("t.one", args, {"queue": "q"})


async def test_a_push_is_repeated_and_makes_no_second_job(losing: tuple[Losing, Client]) -> None:
    proxy, client = losing
    proxy.lose("POST", "/jobs", 2)
    handle = await client.push(new())
    assert proxy.asked.count("POST/ojs/v1/jobs") == 3
    proxy.lose("POST", "/jobs")
    many = await client.push_all([new(1), new(2)])
    proxy.lose("POST", "/jobs")
    bulk = await client.push_each([new(3), new(4)])
    assert proxy.asked.count("POST/ojs/v1/jobs/bulk") == 2
    ids = {job.id async for job in client.jobs.list(queue="q")}
    assert len(ids) == 5
    assert {handle.id, *(one.id for one in many)} < ids
    assert {repr(one) for one in bulk} <= {f"JobHandle({job_id})" for job_id in ids}


async def test_a_workflow_is_started_once(losing: tuple[Losing, Client]) -> None:
    proxy, client = losing
    proxy.lose("POST", "/workflows")
    handle = await client.workflows.start(group(new(1), new(2)))
    assert proxy.asked == ["POST/ojs/v1/workflows"] * 2
    assert [one.id async for one in client.workflows.list()] == [handle.id]


async def test_changes_of_many_jobs_are_told_as_the_first_time(losing: tuple[Losing, Client]) -> None:
    proxy, client = losing
    handle = await client.push(new())
    proxy.lose("POST", "/jobs/bulk/cancel")
    assert [item.status for item in (await client.jobs.cancel_many([handle.id])).items] == ["cancelled"]
    assert len(proxy.asked) == 2


async def test_what_might_be_done_twice_is_not_repeated(losing: tuple[Losing, Client]) -> None:
    proxy, client = losing
    await client.crons.register("nightly", "0 3 * * *", new())
    proxy.lose("POST", "/cron/nightly/trigger")
    with pytest.raises(UnavailableError):
        await client.crons.trigger("nightly")
    assert len(proxy.asked) == 1
    assert (await client.crons.get("nightly")).run_count == 1
    proxy.lose("POST", "/queues/q/pause")
    assert (await client.queues.pause("q")).paused, "which may as well be done twice"
    assert len(proxy.asked) == 2
    await client.queues.create("made")
    with pytest.raises(ConflictError):
        await client.queues.create("made")
