"""Calls of the API over a session of aiohttp."""

from __future__ import annotations

from typing import Any

import aiohttp

from support.system import Job

Session = aiohttp.ClientSession


async def post(http: Session, path: str, body: dict[str, Any]) -> dict[str, Any]:
    async with http.post(f"/ojs/v1{path}", json=body) as answer:
        assert answer.status < 300, await answer.text()
        view: dict[str, Any] = await answer.json(content_type=None)
        return view


async def get(http: Session, path: str) -> dict[str, Any]:
    async with http.get(f"/ojs/v1{path}") as answer:
        assert answer.status == 200, await answer.text()
        view: dict[str, Any] = await answer.json(content_type=None)
        return view


async def push(http: Session, queue: str, **options: object) -> str:
    """Push a job, and return its id."""
    view = await post(http, "/jobs", {"type": "test.event", "args": [1], "options": {"queue": queue, **options}})
    return str(view["job"]["id"])


async def fetch(http: Session, *queues: str, **more: object) -> list[Job]:
    """Fetch from these queues, and return what came; `more` are further members of the request."""
    jobs: list[Job] = (await post(http, "/workers/fetch", {"queues": queues, **more}))["jobs"]
    return jobs


async def run(http: Session, queue: str) -> str:
    """Fetch one job and acknowledge it."""
    [job] = await fetch(http, queue, worker_id="w-events", wait_ms=5_000)
    job_id = str(job["id"])
    await post(http, "/workers/ack", {"job_id": job_id, "result": {"ok": True}})
    return job_id
