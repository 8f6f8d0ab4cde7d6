"""Answers to fetches over HTTP: they are bounded as those over NATS are, and what doesn't fit is the next one's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from integration.gateway.conftest import Serve
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from support.waiting import eventually

LARGE = "x" * 700_000
JOBS = 20
"""As many large ones don't go into one answer, but into two."""


@pytest.fixture
async def http(serve: Serve) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession((await serve()).url) as session:
        yield session


async def post(http: aiohttp.ClientSession, path: str, body: dict[str, Any], method: str = "POST") -> tuple[int, Any]:
    """Return how long the answer is, and what it says."""
    async with http.request(method, f"/ojs/v1/{path}", json=body) as answer:
        text = await answer.read()
        assert answer.status < 300, text[:1_000]
        return len(text), await answer.json(content_type=None)


async def fetched(http: aiohttp.ClientSession, queue: str) -> tuple[int, list[dict[str, Any]]]:
    body = {"queues": [queue], "worker_id": "w1", "count": JOBS, "wait_ms": 5_000}
    size, answer = await post(http, "workers/fetch", body)
    return size, answer["jobs"]


async def pushed(http: aiohttp.ClientSession, queue: str, kind: str) -> None:
    """Push jobs that are large by their arguments, or by their checkpoints.

    They have one attempt left, which one that is handed back doesn't lose.
    """
    args = [LARGE] if kind == "arguments" else []
    retry = {"max_attempts": 1 if kind == "arguments" else 2, "initial_interval": "PT0.001S"}
    options = {"queue": queue, "retry": retry}
    for _ in range(JOBS):
        await post(http, "jobs", {"type": "a.b", "args": args, "options": options})
    if kind == "arguments":
        return
    _, jobs = await fetched(http, queue)
    assert len(jobs) == JOBS
    for job in jobs:
        held = {"worker_id": "w1", "attempt": job["attempt"]}
        await post(http, f"jobs/{job['id']}/checkpoint", {"state": LARGE, **held}, "PUT")
        error = {"code": "handler_error", "message": "it is to be tried again"}
        await post(http, "workers/nack", {"job_id": job["id"], "error": error, "requeue": True, **held})


@pytest.mark.parametrize("kind", ["arguments", "checkpoints"])
async def test_a_fetch_answers_with_what_fits_and_the_rest_comes_with_the_next(
    http: aiohttp.ClientSession, queue: str, kind: str
) -> None:
    await pushed(http, queue, kind)
    seen: set[str] = set()
    answers = 0

    async def all_of_them() -> bool:
        nonlocal answers
        size, jobs = await fetched(http, queue)
        assert size <= DEFAULT_LIMITS.max_fetch_bytes
        answers += bool(jobs)
        for job in jobs:
            assert job["id"] not in seen
            assert kind == "arguments" or job["checkpoint"]["state"] == LARGE
            seen.add(job["id"])
        return len(seen) == JOBS

    await eventually(all_of_them)
    assert answers > 1
