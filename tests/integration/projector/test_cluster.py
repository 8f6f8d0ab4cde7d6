"""The projector on three servers: what one of them does not know yet, or no longer, must not cost an event."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from integration.conftest import OpenStore
from integration.projector.samples import ENDS, assert_events_complete, counted, lives, patient
from integration.samples import draft, fetch
from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import call
from ojs_features.all import FOLLOWED
from ojs_index.asking.client import Queries
from ojs_index.asking.messages import MAX_PAGE, QueuesAsk
from ojs_index.safety_net.lost_tokens import LostTokenTimings
from ojs_index.safety_net.safety import SafetyNet, SafetyTimings
from ojs_projector.projector import Projector, ProjectorTimings
from support.cluster import NatsCluster
from support.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


async def test_events_and_numbers_are_complete_while_leaders_change(
    nats_cluster: NatsCluster, open_store: OpenStore, tmp_path: Path
) -> None:
    store = await open_store(nats_cluster.url, replicas=3)
    projectors = [
        Projector(await open_store(nats_cluster.url, role="projector", replicas=3), tmp_path, features=FOLLOWED)
        for _ in range(2)
    ]
    try:
        for projector in projectors:
            await projector.start()
        ids = await lives(store, 2 * len(ENDS))
        for stream in (store.config.events_stream, store.config.records_stream):
            loading = asyncio.create_task(lives(store, 2 * len(ENDS)))
            await call(store.nats, f"STREAM.LEADER.STEPDOWN.{stream}")
            ids += await loading
        await eventually(lambda: relayed(Queries(store)))
        await assert_events_complete(store, ids)
        expected = await counted(store)
        page = await patient(store).queues(QueuesAsk(also=tuple(expected), limit=MAX_PAGE))
        assert {queue.name: queue.counts.total for queue in page.queues if queue.name in expected} == {
            queue: sum(numbers.values()) for queue, numbers in expected.items()
        }
    finally:
        for projector in projectors:
            await projector.stop()


async def test_a_lost_token_is_missed_and_one_that_came_late_is_not(
    nats_cluster: NatsCluster, open_store: OpenStore, tmp_path: Path
) -> None:
    timings = ProjectorTimings(wait_s=PATIENCE_S, safety=SafetyTimings(tokens=LostTokenTimings(grace_ms=250)))
    store = await open_store(nats_cluster.url, replicas=3)
    projector = Projector(
        await open_store(nats_cluster.url, role="projector", replicas=3), tmp_path, timings=timings, features=FOLLOWED
    )
    await projector.start()
    try:
        lost, late = [await store.enqueue.push(draft(queue="net.cluster")) for _ in range(2)]
        await call(store.nats, f"STREAM.PURGE.{store.config.ready_stream}", {"filter": "ojs.ready.net_cluster.>"})
        now = store.clock.now()
        await eventually(lambda: store.clock.now() > now + 250)
        await store.committer.repeat_token(late, (await store.records.leader(late.id)).sequence)
        await eventually(lambda: indexed(Queries(store)))
        net = projector._safety
        assert net is not None
        await eventually(lambda: found_one(net))
        assert sorted(job.id for job in await fetch(store, "net.cluster", count=9)) == sorted([lost.id, late.id])
    finally:
        await projector.stop()


async def indexed(queries: Queries) -> bool:
    with contextlib.suppress(OjsError):
        return (await queries.queue("net.cluster")).counts.available == 2
    return False


async def found_one(net: SafetyNet) -> bool:
    """Look, and return whether one token was published again. A cluster that was just disturbed may not answer yet."""
    with contextlib.suppress(OjsError):
        await net.look()
    return net.found == {"token": 1}


async def relayed(queries: Queries) -> bool:
    with contextlib.suppress(OjsError):
        await queries.until_relayed()
        return True
    return False
