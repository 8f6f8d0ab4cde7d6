"""Processes stop for a while, or are replaced, with requests in flight: everybody gets an answer, then all goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import aiohttp
import pytest

from ojs_nats.wire.ids import new_job_id
from ojs_nats.wire.times import parse_timestamp
from support.system import Processes, System
from support.waiting import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(90)]

PAUSE_S = 3.0
LONGEST_ANSWER_S = 5.0


class Reply(NamedTuple):
    """An answer and how long it took; `status` 0 if the connection broke, `refused` if there was none."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]
    seconds: float
    refused: bool = False


@pytest.fixture
async def http(system: System) -> AsyncIterator[aiohttp.ClientSession]:
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


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_requests_are_answered_while_nats_stands_still(system: System, http: aiohttp.ClientSession) -> None:
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

    await eventually(everything_works, 5.0)
    # Whatever the pause left undecided is settled by asking again, and nothing that was acknowledged is gone.
    assert (await request(http, "POST", "/ojs/v1/jobs", {"id": unsure, "type": "t", "args": []})).status in {201, 409}
    for job_id in (*pushed, unsure):
        assert (await request(http, "GET", f"/ojs/v1/jobs/{job_id}")).status == 200


async def test_a_slow_answer_does_not_set_the_clock_wrong(system: System, http: aiohttp.ClientSession) -> None:
    # Asking for health measures the distance from the server's clock; here the answer takes 1.5 s on its way.
    with stopped(system.children["nats-server"]):
        slow = [asyncio.create_task(request(http, "GET", "/readyz")) for _ in range(4)]
        await asyncio.sleep(1.5)
    assert {reply.status for reply in await asyncio.gather(*slow)} == {200}
    beat = await request(http, "POST", "/ojs/v1/workers/heartbeat", {"worker_id": "w", "active_jobs": []})
    assert beat.status == 200
    assert abs(parse_timestamp(beat.body["server_time"]) / 1000 - time.time()) < 0.3
