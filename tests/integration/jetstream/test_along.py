"""What nobody waits for goes along with the next message that is sent, or by itself after a moment."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ojs_engine.jetstream.connection import Connection, ConnectionTimings
from support.nats import NatsServer
from support.waiting import eventually

NEVER_S = 3_600.0


@pytest.fixture
async def heard(nats_server: NatsServer) -> AsyncIterator[list[bytes]]:
    """Of what is said, in its order."""
    found: list[bytes] = []
    listener = Connection("listener")
    await listener.connect(nats_server.url)
    await listener.listen("said", lambda message: found.append(message.data))
    yield found
    await listener.close()


async def speaker(server: NatsServer, along_s: float) -> Connection:
    nats = Connection("speaker", ConnectionTimings(along_s=along_s))
    await nats.connect(server.url)
    return nats


async def test_it_goes_ahead_of_the_next_message(nats_server: NatsServer, heard: list[bytes]) -> None:
    nats = await speaker(nats_server, NEVER_S)
    for text in (b"1", b"2"):
        nats.publish("said", text, along=True)
    nats.publish("said", b"3")
    await eventually(lambda: heard == [b"1", b"2", b"3"])
    await nats.close()


async def test_it_waits_for_no_longer_than_a_moment(nats_server: NatsServer, heard: list[bytes]) -> None:
    nats = await speaker(nats_server, 0.01)
    nats.publish("said", b"1", along=True)
    await eventually(lambda: heard == [b"1"])
    nats.publish("said", b"2", along=True)
    await eventually(lambda: heard == [b"1", b"2"])
    await nats.close()


async def test_it_leaves_before_the_connection_does(nats_server: NatsServer, heard: list[bytes]) -> None:
    nats = await speaker(nats_server, NEVER_S)
    nats.publish("said", b"1", along=True)
    await nats.close()
    await eventually(lambda: heard == [b"1"])
