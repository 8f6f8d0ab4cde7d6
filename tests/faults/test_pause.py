"""Processes stop for a while, or are replaced, with requests in flight: everybody gets an answer, then all goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from ojs_engine.base.ids import new_job_id
from ojs_engine.base.times import parse_timestamp
from support.processes import stopped
from support.system import Processes, Services
from support.waiting import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

PAUSE_S = 4.5
"""Longer than a commit is tried, so that some are given up."""
LONGEST_ANSWER_S = 5.0


class Reply(NamedTuple):
    """An answer and how long it took; `status` 0 if the connection broke, `refused` if there was none."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]
    seconds: float
    refused: bool = False


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """One for all tests: what stands still goes on, and what is replaced is there again.

    The test of the clock comes first: a gateway that has just missed nats-server measures again soon, which would hide what
    that test looks for.
    """
    with Services.started(tmp_path_factory.mktemp("system")) as system:
        yield system


@pytest.fixture
async def http(system: Services) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(system.url) as session:
        yield session


async def request(http: aiohttp.ClientSession, method: str, path: str, body: object = None) -> Reply:
    started = time.monotonic()
    try:
        async with http.request(method, path, json=body, timeout=aiohttp.ClientTimeout(total=20)) as response:
            answer = await response.json(content_type=None)
            return Reply(response.status, dict(response.headers), answer, time.monotonic() - started)
    except aiohttp.ClientConnectorError:
        return Reply(0, {}, {}, time.monotonic() - started, refused=True)
    except aiohttp.ClientError:
        return Reply(0, {}, {}, time.monotonic() - started)


async def push(http: aiohttp.ClientSession, queue: str, **more: object) -> Reply:
    return await request(http, "POST", "/ojs/v1/jobs", {"type": "t", "args": [], "options": {"queue": queue}} | more)


async def fetch(http: aiohttp.ClientSession, queue: str, wait_ms: int = 0) -> Reply:
    return await request(http, "POST", "/ojs/v1/workers/fetch", {"queues": [queue], "wait_ms": wait_ms, "count": 100})


async def test_a_slow_answer_does_not_set_the_clock_wrong(system: Services, http: aiohttp.ClientSession) -> None:
    # Asking for health measures the distance from the server's clock; here the answer takes 1.5 s on its way.
    with stopped(system.children["nats-server"]):
        slow = [asyncio.create_task(request(http, "GET", "/readyz")) for _ in range(4)]
        await asyncio.sleep(1.5)
    assert {reply.status for reply in await asyncio.gather(*slow)} == {200}
    beat = await request(http, "POST", "/ojs/v1/workers/heartbeat", {"worker_id": "w", "active_jobs": []})
    assert beat.status == 200
    assert abs(parse_timestamp(beat.body["server_time"]) / 1000 - time.time()) < 0.3


async def test_requests_are_answered_while_nats_stands_still(system: Services, http: aiohttp.ClientSession) -> None:
    pushed = [(await push(http, "still")).body["job"]["id"] for _ in range(4)]
    held = (await fetch(http, "still")).body["jobs"][0]["id"]
    unsure = new_job_id(int(time.time() * 1000))

    def asked() -> list[tuple[str, str, object]]:
        return [
            ("POST", "/ojs/v1/jobs", {"id": unsure, "type": "t", "args": [], "options": {"queue": "still"}}),
            ("POST", "/ojs/v1/workers/fetch", {"queues": ["still"]}),
            ("POST", "/ojs/v1/workers/fetch", {"queues": ["still"], "wait_ms": 2_000}),
            ("POST", "/ojs/v1/workers/ack", {"job_id": held}),
            ("POST", "/ojs/v1/workers/heartbeat", {"worker_id": "w", "active_jobs": [held]}),
            ("GET", f"/ojs/v1/jobs/{pushed[0]}", None),
            ("DELETE", f"/ojs/v1/jobs/{pushed[3]}", None),
            ("GET", "/readyz", None),
        ]

    async def ask(method: str, path: str, body: object, left_s: float) -> list[tuple[str, Reply]]:
        """Again and again for as long as nats-server is stopped, as clients do."""
        until = time.monotonic() + left_s
        replies: list[tuple[str, Reply]] = []
        while time.monotonic() < until:
            replies.append((path, await request(http, method, path, body)))
            await asyncio.sleep(0.05)
        return replies

    with stopped(system.children["nats-server"]):
        asking = [asyncio.create_task(ask(*what, PAUSE_S)) for what in asked()]
        await asyncio.sleep(PAUSE_S)
    told = [reply for replies in await asyncio.gather(*asking) for reply in replies]
    assert {path for path, reply in told if reply.status in {503, 504}} >= {"/ojs/v1/jobs", "/ojs/v1/workers/fetch"}
    for path, reply in told:
        assert reply.seconds < LONGEST_ANSWER_S, f"{path} took {reply.seconds:.1f} s"
        assert reply.status in {200, 201, 409, 503, 504}, f"{path} was answered {reply.status} {reply.body}"
        if reply.status in {503, 504} and path != "/readyz":
            assert int(reply.headers["Retry-After"]) >= 1
            assert reply.body["error"]["retryable"] is True

    async def everything_works() -> bool:
        return (await request(http, "GET", "/readyz")).status == 200 and (await push(http, "after")).status == 201

    await eventually(everything_works)
    # Whatever the pause left undecided is settled by asking again, and nothing that was acknowledged is gone.
    assert (await request(http, "POST", "/ojs/v1/jobs", {"id": unsure, "type": "t", "args": []})).status in {201, 409}
    for job_id in (*pushed, unsure):
        assert (await request(http, "GET", f"/ojs/v1/jobs/{job_id}")).status == 200


async def test_a_gateway_that_stands_still_keeps_no_work_from_others(system: Services, tmp_path: Path) -> None:
    others = Processes(tmp_path / "others", system.nats_url)
    try:
        other_url = others.start("gateway").ready()["url"]
        async with aiohttp.ClientSession(system.url) as here, aiohttp.ClientSession(other_url) as there:
            waiting = asyncio.create_task(fetch(here, "shared", 15_000))
            await there_is_a_waiter(here, waiting)
            with stopped(system.children["gateway"]):
                pushed = (await push(there, "shared")).body["job"]["id"]
                taken = await fetch(there, "shared", 4_000)
                assert [job["id"] for job in taken.body["jobs"]] == [pushed]
                assert taken.seconds < 1.0
                assert not waiting.done()
            # Awake again, it hands out what comes next, once.
            second = (await push(there, "shared")).body["job"]["id"]
            woken = await waiting
            assert [(job["id"], job["attempt"]) for job in woken.body["jobs"]] == [(second, 1)]
            assert (await fetch(there, "shared")).body["jobs"] == []
    finally:
        others.stop()


async def there_is_a_waiter(http: aiohttp.ClientSession, waiting: asyncio.Task[Reply]) -> None:
    """Return when a long poll must be under way: a request sent after it has been answered, and it has not."""
    await asyncio.sleep(0)
    await request(http, "GET", "/readyz")
    assert not waiting.done()


async def many_were_answered(replies: list[Reply]) -> None:
    """Return when every kind of request has gone through since."""
    before = len(replies)

    def enough() -> bool:
        return sum(not reply.refused for reply in replies[before:]) > 60

    await eventually(enough)


async def test_nobody_is_cut_off_when_the_gateway_is_replaced(system: Services) -> None:
    """Each client has a connection of its own, which it uses again at once: one that lies in a pool may be closed, as HTTP has
    it, in the moment in which it is taken up again.
    """
    replies: list[Reply] = []
    stopping = asyncio.Event()

    async def client(number: int) -> None:
        turn = number
        async with aiohttp.ClientSession(system.url, connector=aiohttp.TCPConnector(limit=1)) as http:
            http._retry_connection = False  # or aiohttp would hide what is looked for here
            while not stopping.is_set():
                turn += 1
                match turn % 3:
                    case 0:
                        reply = await push(http, f"roll-{number}")
                    case 1:
                        reply = await fetch(http, f"roll-{number}")
                    case _:
                        reply = await fetch(http, "nothing-comes", 600)
                replies.append(reply)
                if reply.refused:
                    await asyncio.sleep(0.05)

    clients = [asyncio.create_task(client(number)) for number in range(12)]
    for _ in range(2):
        await many_were_answered(replies)
        assert await asyncio.to_thread(system.stop, "gateway") == 0
        await asyncio.to_thread(system.restart, "gateway")
    stopping.set()
    await asyncio.gather(*clients)
    broken = [reply for reply in replies if reply.status not in {200, 201} and not reply.refused]
    assert not broken
