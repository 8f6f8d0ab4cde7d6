"""Attempts to connect to NATS that fail or are broken off leave no socket open, in the server and in the Python client."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import Final, Protocol

import pytest

from ojs_api.work import FETCH
from ojs_engine.jetstream.connection import CannotConnect, Connection, ConnectionTimings
from ojs_nats._nats import NatsTransport
from ojs_nats._operations import Request
from ojs_nats._timings import NatsTimings
from ojs_nats._transport import NotNow
from ojs_nats.errors import RefusedError
from support.nats import NatsServer
from support.waiting import eventually

INFO: Final = b'INFO {"server_id":"one","max_payload":1048576,"headers":true,"proto":1}\r\n'
GREETING: Final = INFO + b"PONG\r\n"
PLACES: Final = {
    "silence": b"",
    "half a line": b'INFO {"server',
    "a greeting without an end": INFO,
    "a page": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a line that is no greeting": b"INFO\r\n",
    "a greeting that is no object": b"INFO [1]\r\n",
    "a refusal": INFO + b"-ERR 'Authorization Violation'\r\n",
}
"""What may answer in the place of a NATS server."""


class Place:
    """A port where something answers. `says` is what the next connections are greeted with."""

    def __init__(self) -> None:
        self.says = b""
        self.came = 0
        """How many connections there were."""
        self.heard: dict[int, bytes] = {}
        """What each of them, by its number, has said."""
        self.there: set[asyncio.StreamWriter] = set()
        """Those that the other side hasn't ended."""
        self.url = ""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        number = self.came
        self.there.add(writer)
        writer.write(self.says)
        with suppress(ConnectionError):
            while heard := await reader.read(65_536):
                self.heard[number] = self.heard.get(number, b"") + heard
        self.there.discard(writer)
        writer.transport.abort()

    def reset(self) -> None:
        """End all connections."""
        for writer in self.there:
            writer.transport.abort()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    async with await asyncio.start_server(place.take, "127.0.0.1", 0) as server:
        place.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield place
        place.reset()


class Side(Protocol):
    """Who connects."""

    def connect(self) -> Awaitable[None]: ...

    async def connected(self) -> bool: ...

    async def close(self) -> None: ...


class ServerSide:
    def __init__(self, url: str) -> None:
        self._url = url
        self._nats = Connection("test", ConnectionTimings(reconnect_s=0.02))

    async def connect(self) -> None:
        with suppress(CannotConnect):
            await self._nats.connect(self._url)

    async def connected(self) -> bool:
        return self._nats.connected

    async def close(self) -> None:
        await self._nats.close()


class ClientSide:
    def __init__(self, url: str) -> None:
        self._transport = NatsTransport(url, timings=NatsTimings(reconnect_s=0.02, late_s=0.05))

    async def connect(self) -> None:
        with suppress(NotNow, RefusedError):
            await self._transport.once(Request(FETCH, answer_s=0.2), b"{}")

    async def connected(self) -> bool:
        """Whether a request goes out, though nobody answers it."""
        with pytest.raises(NotNow) as found:
            await self._transport.once(Request(FETCH, answer_s=0.2), b"{}")
        return "nobody answered within" in str(found.value)

    async def close(self) -> None:
        await self._transport.close()


@pytest.fixture(params=[ServerSide, ClientSide])
def side(place: Place, request: pytest.FixtureRequest) -> Side:
    made: Side = request.param(place.url)
    return made


@pytest.mark.parametrize("says", PLACES)
async def test_an_attempt_that_is_cancelled_closes_its_socket(place: Place, side: Side, says: str) -> None:
    place.says = PLACES[says]
    trying = asyncio.ensure_future(side.connect())
    await eventually(lambda: place.came)
    trying.cancel()
    with suppress(asyncio.CancelledError):
        await trying
    await eventually(lambda: not place.there)
    await side.close()


@pytest.mark.parametrize("says", ["a page", "a line that is no greeting", "a refusal"])
async def test_an_attempt_that_fails_closes_its_socket(place: Place, side: Side, says: str) -> None:
    place.says = PLACES[says]
    await side.connect()
    await eventually(lambda: not place.there)
    await side.close()


@pytest.mark.parametrize("says", PLACES)
async def test_whoever_is_closed_while_it_connects_anew_leaves_nothing(place: Place, side: Side, says: str) -> None:
    place.says = GREETING
    await side.connect()
    assert place.came == 1
    place.says = PLACES[says]
    place.reset()
    await eventually(lambda: place.came > 1)
    await side.close()
    came = place.came
    await eventually(lambda: not place.there)
    assert place.came == came


async def test_each_new_attempt_closes_the_one_before(place: Place, side: Side) -> None:
    place.says = GREETING
    await side.connect()
    place.says = PLACES["a page"]
    place.reset()
    await eventually(lambda: place.came > 4)
    await eventually(lambda: len(place.there) <= 1)
    await side.close()
    await eventually(lambda: not place.there)


@pytest.mark.parametrize("says", PLACES)
async def test_whatever_answered_meanwhile_a_server_that_is_back_is_found(place: Place, side: Side, says: str) -> None:
    place.says = GREETING
    await side.connect()
    place.says = PLACES[says]
    place.reset()
    await eventually(lambda: place.came > 1)
    place.says = GREETING
    place.reset()

    await eventually(side.connected, 60)
    await side.close()


async def test_each_connection_of_a_client_has_an_inbox_of_its_own(place: Place) -> None:
    """Whoever answers what was asked on the one before finds nobody there."""
    place.says = GREETING
    side = ClientSide(place.url)

    def inboxes(number: int) -> set[str]:
        return set(re.findall(r"^SUB (\S+)", place.heard.get(number, b"").decode(), re.MULTILINE))

    await side.connect()
    await eventually(lambda: inboxes(1))
    place.reset()
    await eventually(side.connected, 60)
    await eventually(lambda: inboxes(2))
    assert (len(inboxes(1)), len(inboxes(2)), inboxes(1) & inboxes(2)) == (1, 1, set())
    await side.close()


def kept() -> int:
    """Return how many exceptions are in memory."""
    gc.collect()
    return sum(isinstance(one, BaseException) for one in gc.get_objects())


async def test_failures_to_connect_are_not_kept(nats_server: NatsServer) -> None:
    """An exception that is kept holds its frames: a process would grow for as long as NATS is away."""
    connection = Connection("test", ConnectionTimings(reconnect_s=0.02))
    await connection.connect(nats_server.url)
    nats_server.kill()
    attempts = 0

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()

    async def tried(number: int) -> None:
        async def often_enough() -> bool:
            return attempts >= number

        await eventually(often_enough)

    async with await asyncio.start_server(refuse, "127.0.0.1", nats_server.port):
        await tried(3)
        before = kept()
        await tried(15)
        assert kept() - before < 6
    await connection.close()


async def test_a_client_keeps_no_failures_to_connect_either(place: Place) -> None:
    side = ClientSide(place.url)
    place.says = GREETING
    await side.connect()
    place.says = PLACES["a page"]
    place.reset()
    await eventually(lambda: place.came > 3)
    before = kept()
    await eventually(lambda: place.came > 15)
    assert kept() - before < 6
    await side.close()
