"""A process whose nats-server is cut off from its cluster goes to another one, where a majority works."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from integration.conftest import OpenStore
from integration.samples import draft
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.connection import Connection, ConnectionTimings
from ojs_engine.store.store import StoreTimings
from support.cluster import NatsCluster
from support.nats import NatsServer
from support.network import RESET, Network
from support.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


QUICK = ConnectionTimings(led_every_s=0.2, unled_s=1.0)


@pytest.fixture
def timings() -> StoreTimings:
    return StoreTimings(connections=QUICK)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    with Network() as network, NatsCluster(tmp_path, network) as cluster:
        yield cluster


def cut_off(cluster: NatsCluster, node: NatsServer) -> None:
    """Have a node reach no other, and none reach it."""
    for ends, link in cluster.links.items():
        if node.name in ends:
            link.become(RESET)


async def at(nats: Connection, node: NatsServer) -> None:
    """Have a connection go to a node."""
    while nats._nc.place != node.url.removeprefix("nats://"):
        await moved(nats)
    nats._nc.left = []


async def moved(nats: Connection) -> None:
    before = nats.connections
    await nats._nc.move_on()
    await eventually(lambda: nats.connections > before)


async def test_a_store_leaves_a_server_that_is_cut_off(cluster: NatsCluster, open_store: OpenStore) -> None:
    store = await open_store(cluster.url, replicas=3)
    cut = cluster.nodes[0]
    for nats in (store.nats, store.bulk):
        await at(nats, cut)
    await store.enqueue.push(draft(queue="before"))
    cut_off(cluster, cut)
    job = draft(queue="q")

    async def stored() -> Job | None:
        try:
            return await store.enqueue.push(job)
        except OjsError as error:
            return await store.jobs.get(job.id) if error.code == "duplicate" else None

    assert (await eventually(stored, 60.0)) is not None
    await eventually(lambda: cut.url.removeprefix("nats://") not in {store.nats._nc.place, store.bulk._nc.place}, 60.0)
    assert (await store.jobs.get(job.id)).queue == "q"


async def test_without_any_leader_the_servers_are_tried_ever_more_rarely(cluster: NatsCluster) -> None:
    nats = Connection("test", QUICK)
    await nats.connect(cluster.url)
    try:
        for node in cluster.nodes[1:]:
            await asyncio.to_thread(node.kill)
        await at(nats, cluster.nodes[0])
        cluster.nodes[1].start()
        cut_off(cluster, cluster.nodes[0])
        before, began = nats.connections, asyncio.get_running_loop().time()
        await eventually(lambda: nats.connections >= before + 4, 90.0)
        # Both others after one such time each, then after two; that it is noticed late only makes it longer.
        assert asyncio.get_running_loop().time() - began > 5 * QUICK.unled_s
    finally:
        await nats.close()


async def test_who_has_one_server_stays_with_it(cluster: NatsCluster) -> None:
    nats = Connection("test", QUICK)
    await nats.connect(cluster.nodes[0].url)
    try:
        cut_off(cluster, cluster.nodes[0])

        async def unled() -> bool:
            answer = await nats.request("$JS.API.INFO")
            return b"10008" in getattr(answer, "data", b"")

        await eventually(unled, 60.0)
        await nats._look_for_leader()
        assert (nats.connections, nats.connected) == (1, True)
    finally:
        await nats.close()


_MAY_NOT_ASK: Final = """
authorization { users = [ { user: "a", password: "b", permissions: { publish: { deny: ["$JS.API.INFO"] } } } ] }
"""


async def test_who_may_not_ask_for_a_leader_asks_once_and_stays(tmp_path: Path) -> None:
    with NatsServer(tmp_path, more=_MAY_NOT_ASK) as server, capture_logs() as logs:
        nats = Connection("test", QUICK)
        await nats.connect(f"nats://a:b@127.0.0.1:{server.port},nats://a:b@localhost:{server.port}")
        try:
            await eventually(lambda: not nats._may_look)
            await nats.request("nobody.listens")
            await nats._look_for_leader()
            assert (nats.connections, nats.connected, nats.timed_out) == (1, True, 0)
        finally:
            await nats.close()
    assert [line for line in logs if line["log_level"] == "warning"] == []
