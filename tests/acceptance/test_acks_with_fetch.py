"""A worker that acknowledges and fetches in one request, over HTTP and over NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import nats
import pytest

from support.sessions import get, post
from support.system import System

Fetch = Callable[[Any], Awaitable[Any]]

QUEUE = "af.q"
PLACES = 20
JOBS = 80


async def drain(fetch: Fetch, places: int) -> list[str]:
    """Do jobs until there are none, on so many places; each fetch asks for as many as it acknowledges."""
    done: list[str] = []
    acks: list[dict[str, Any]] = []
    while True:
        body = {"queues": [QUEUE], "worker_id": "w", "count": places, "wait_ms": 0, "acks": acks}
        answer = await fetch(body)
        if acks:
            assert [item["status"] for item in answer["acks"]["items"]] == ["acknowledged"] * len(acks)
            done += [ack["job_id"] for ack in acks]
        if not answer["jobs"]:
            return done
        acks = [{"job_id": job["id"], "attempt": job["attempt"], "result": job["args"]} for job in answer["jobs"]]


def most_at_a_time(jobs: list[Any]) -> int:
    """How many of the jobs were active together, by when they were started and completed."""
    changes = sorted([(job["started_at"], 1) for job in jobs] + [(job["completed_at"], -1) for job in jobs])
    most = active = 0
    for _, change in changes:
        active += change
        most = max(most, active)
    return most


@pytest.mark.parametrize("way", ["http", "nats"])
async def test_a_worker_drains_a_queue_and_never_has_more_active_jobs_than_places(
    system: System, http: aiohttp.ClientSession, way: str
) -> None:
    link = await nats.connect(system.nats_url)

    async def by_nats(body: Any) -> Any:
        answer = await link.request(f"ojs.api.fetchJobs.{QUEUE}", msgspec.json.encode(body), timeout=60)
        return msgspec.json.decode(answer.data)

    async def by_http(body: Any) -> Any:
        return await post(http, "/workers/fetch", body)

    async def job(job_id: str) -> Any:
        return (await get(http, f"/jobs/{job_id}"))["job"]

    jobs = [{"type": "a.b", "args": [number], "options": {"queue": QUEUE}} for number in range(JOBS)]
    await post(http, "/jobs/batch", {"jobs": jobs})
    fetch = by_nats if way == "nats" else by_http
    halves = await asyncio.gather(*(drain(fetch, PLACES // 2) for _ in range(2)))
    await link.close()
    done = [job_id for half in halves for job_id in half]
    assert len(set(done)) == len(done) == JOBS
    found = await asyncio.gather(*map(job, done))
    assert {each["state"] for each in found} == {"completed"}
    assert most_at_a_time(found) <= PLACES
