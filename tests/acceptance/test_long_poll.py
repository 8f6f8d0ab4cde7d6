"""Waiting for work over HTTP: it ends at once when there is some, and never costs a job."""

from __future__ import annotations

import asyncio
import json
import time
from urllib.parse import urlsplit

import aiohttp

from support.sessions import fetch, push
from support.system import System
from support.waiting import eventually


async def test_a_waiting_worker_gets_a_job_at_once(http: aiohttp.ClientSession) -> None:
    for _ in range(3):
        waiting = asyncio.create_task(fetch(http, "poll", wait_ms=20_000))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done
        started = time.monotonic()
        job_id = await push(http, "poll")
        assert [job["id"] for job in await waiting] == [job_id]
        assert time.monotonic() - started < 10, "sooner than its wait ends"


async def test_each_job_goes_to_one_of_the_workers_that_wait(http: aiohttp.ClientSession) -> None:
    waiting = [asyncio.create_task(fetch(http, "poll", wait_ms=5_000)) for _ in range(5)]
    pushed = {await push(http, "poll") for _ in range(5)}
    fetched = [job["id"] for jobs in await asyncio.gather(*waiting) for job in jobs]
    assert len(fetched) == 5
    assert set(fetched) == pushed


async def test_a_worker_that_leaves_while_it_waits_takes_nothing_with_it(system: System, http: aiohttp.ClientSession) -> None:
    address = urlsplit(system.url)
    body = json.dumps({"queues": ["poll"], "wait_ms": 20_000})
    head = f"POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: localhost\r\nOJS-Version: 1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    writers = []
    for _ in range(10):
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write((head + body).encode())
        writers.append(writer)
    await fetch(http, "poll", wait_ms=100)  # by now the ten wait as well
    for writer in writers:
        writer.close()
    pushed = {await push(http, "poll") for _ in range(3)}
    fetched: set[str] = set()

    async def everything() -> bool:
        fetched.update(job["id"] for job in await fetch(http, "poll", wait_ms=200))
        return fetched == pushed

    await eventually(everything)
