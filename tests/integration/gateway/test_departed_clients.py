"""Streams of clients that have left: they take no place from others, and count as no failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlsplit

import aiohttp
import pytest
import structlog

from integration.gateway.conftest import Serve
from ojs_features.events.startup import MAX_SUBSCRIPTIONS
from ojs_gateway.context import GatewayTimings
from support.waiting import eventually

PLACES = 20
NEVER_WRITTEN_TO = GatewayTimings(keep_alive_s=3_600.0)
"""A write to a stream without events would tell that its client has left."""


@pytest.fixture
async def http(serve: Serve) -> AsyncIterator[aiohttp.ClientSession]:
    gateway = await serve(timings=NEVER_WRITTEN_TO, features={MAX_SUBSCRIPTIONS: PLACES})
    async with aiohttp.ClientSession(gateway.url, connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


async def streams(http: aiohttp.ClientSession) -> None:
    """Take all places by server-sent events, and leave."""
    opened = await asyncio.gather(*(http.get("/ojs/v1/events/stream") for _ in range(PLACES)))
    statuses = {answer.status for answer in opened}
    for answer in opened:
        answer.close()
    assert statuses == {200}


async def sockets(http: aiohttp.ClientSession) -> None:
    """Take all places by WebSockets, and leave without a word."""
    opened = await asyncio.gather(*(http.ws_connect("/ojs/v1/ws") for _ in range(PLACES)))
    for socket in opened:
        await socket.send_json({"action": "subscribe", "channel": "all"})
    answers = [await socket.receive_json() for socket in opened]
    for socket in opened:
        transport_of(socket).abort()
    assert {answer["type"] for answer in answers} == {"subscribed"}


def transport_of(socket: aiohttp.ClientWebSocketResponse) -> asyncio.Transport:
    connection = socket._response.connection
    assert connection is not None
    assert isinstance(connection.transport, asyncio.Transport)
    return connection.transport


@pytest.mark.parametrize("take_all_places", [streams, sockets])
async def test_a_place_is_free_as_soon_as_its_client_has_left(
    http: aiohttp.ClientSession, take_all_places: Callable[[aiohttp.ClientSession], Awaitable[None]]
) -> None:
    async def all_again() -> bool:
        try:
            await take_all_places(http)
        except AssertionError:
            return False
        return True

    for _ in range(5):
        await eventually(all_again)


async def test_a_websocket_that_leaves_while_it_is_answered_is_no_failed_request(serve: Serve) -> None:
    where = urlsplit((await serve()).url)
    head = f"GET /ojs/v1/ws HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    frame = bytes([0x81, 0x80 | 2, 0, 0, 0, 0]) + b"{}"
    with structlog.testing.capture_logs() as logged:
        for _ in range(PLACES):
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(head.encode() + 100 * frame)
            writer.write_eof()
            await reader.read()
            writer.close()
    assert [entry for entry in logged if entry["log_level"] == "error"] == []
