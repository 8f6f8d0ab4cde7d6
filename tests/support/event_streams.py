"""Calls that make events, and a reader of server-sent events, for tests over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

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


async def push(http: Session, queue: str, **options: Any) -> str:
    view = await post(http, "/jobs", {"type": "test.event", "args": [1], "options": {"queue": queue, **options}})
    return str(view["job"]["id"])


async def run(http: Session, queue: str) -> str:
    """Fetch one job and acknowledge it."""
    found = await post(http, "/workers/fetch", {"queues": [queue], "worker_id": "w-events", "wait_ms": 5000})
    job_id = str(found["jobs"][0]["id"])
    await post(http, "/workers/ack", {"job_id": job_id, "result": {"ok": True}})
    return job_id


class Stream:
    """An SSE connection, read frame by frame."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def frame(self) -> dict[str, str]:
        """The next frame with data; comments are passed over."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(60):
            async for raw in self._response.content:
                line = raw.decode().rstrip("\n")
                if line == "" and "data" in fields:
                    return fields
                if line == "":
                    fields = {}
                elif not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
        raise AssertionError("the stream ended")

    async def rest(self) -> list[dict[str, str]]:
        """All frames until the server ends the stream."""
        found = []
        while True:
            try:
                found.append(await self.frame())
            except AssertionError:
                return found

    async def connected(self) -> None:
        """Wait for the first bytes, which say that the subscription stands."""
        async with asyncio.timeout(60):
            assert await self._response.content.readline() == b": connected\n"
