"""Whoever listens, and then looks by another connection, misses nothing that comes between."""

from __future__ import annotations

import asyncio

from integration.conftest import OpenStore
from support.nats import NatsServer
from support.network import DELAY, Network


async def test_what_is_published_once_somebody_listens_is_heard(nats_server: NatsServer, open_store: OpenStore) -> None:
    with Network() as network:
        link = network.link(nats_server.port)
        slow = await open_store(f"nats://127.0.0.1:{link.port}")
        quick = await open_store(nats_server.url)
        link.become(DELAY)
        heard = asyncio.Event()
        await slow.nats.listen("said", lambda _message: heard.set())
        quick.nats.publish("said", b"")
        async with asyncio.timeout(30):
            await heard.wait()


async def test_whoever_stops_waiting_to_be_known_leaves_the_connection_as_it_is(
    nats_server: NatsServer, open_store: OpenStore
) -> None:
    with Network() as network:
        link = network.link(nats_server.port)
        slow = await open_store(f"nats://127.0.0.1:{link.port}")
        before = slow.nats.connections
        link.become(DELAY)
        listening = asyncio.create_task(slow.nats.listen("said", lambda _message: None))
        await asyncio.sleep(0)
        listening.cancel()
        await asyncio.wait([listening])
        assert await slow.ping() > 0, "NATS answers in order, so the answer to who stopped has come as well"
        assert (slow.nats.connected, slow.nats.connections) == (True, before)
