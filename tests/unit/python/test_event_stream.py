"""Events over HTTP, from a server that breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from ojs_nats import Client
from ojs_nats.errors import UnavailableError

PATIENCE_S = 0.3
EVENT = b'id: %d\nevent: job.failed\ndata: {"id":"evt_%d","type":"job.failed","time":"2026-11-24T00:00:00Z"}\n\n'
Connection = Callable[[web.StreamResponse], Awaitable[None]]


@asynccontextmanager
async def telling(*connections: Connection) -> AsyncIterator[tuple[Client, list[str]]]:
    """A client of a server that treats its connections like that, the last for ever; and the cursors that it was sent."""
    sent: list[str] = []

    async def newest(_request: web.Request) -> web.Response:
        return web.json_response({"events": [], "cursor": "40", "has_more": False})

    async def stream(request: web.Request) -> web.StreamResponse:
        sent.append(request.query["last_event_id"])
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(b": connected\nretry: 3000\n\n")
        await connections[min(len(sent), len(connections)) - 1](answer)
        assert request.transport is not None
        request.transport.abort()
        return answer

    application = web.Application()
    application.router.add_get("/ojs/v1/events", newest)
    application.router.add_get("/ojs/v1/events/stream", stream)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with Client(f"http://127.0.0.1:{runner.addresses[0][1]}", retry_for=PATIENCE_S) as client:
        yield client, sent
    await runner.cleanup()


async def silent(_answer: web.StreamResponse) -> None:
    """For longer than the client has patience."""
    await asyncio.sleep(2 * PATIENCE_S)


async def broken(_answer: web.StreamResponse) -> None:
    """At once."""


async def failing(answer: web.StreamResponse) -> None:
    await answer.write(b'event: error\ndata: {"error":{"code":"backend_unavailable"}}\n\n')


def told(*numbers: int) -> Connection:
    async def tell(answer: web.StreamResponse) -> None:
        for number in numbers:
            await answer.write(EVENT % (number, number))

    return tell


async def test_it_goes_on_behind_the_last_event() -> None:
    async with telling(broken, told(41, 43), told(44)) as (client, sent):
        found: list[str] = []
        async for event in client.events():
            found.append(event.cursor)
            if len(found) == 3:
                break
    assert found == ["41", "43", "44"]
    assert sent == ["40", "40", "43"]


async def test_silence_takes_nothing_of_its_patience() -> None:
    async with telling(silent, silent, told(41)) as (client, sent):
        async for event in client.events():
            assert event.cursor == "41"
            break
    assert len(sent) == 3


@pytest.mark.parametrize("connection", [broken, failing])
async def test_its_patience_ends_when_nothing_comes_of_any_connection(connection: Connection) -> None:
    async with telling(connection) as (client, _):
        with pytest.raises(UnavailableError):
            async for _event in client.events():
                pass
