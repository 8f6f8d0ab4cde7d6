"""The projector on three servers: what one of them does not know yet, or no longer, must not cost an event."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from integration.conftest import OpenStore
from integration.projector.samples import ENDS, assert_events_complete, counted, lives
from ojs_nats.errors import OjsError
from ojs_nats.queries import Queries, QueuesAsk
from ojs_nats.store.api import call
from ojs_projector import Projector
from support.cluster import NatsCluster
from support.waiting import eventually

pytestmark = pytest.mark.cluster


async def test_events_and_numbers_are_complete_while_leaders_change(
    nats_cluster: NatsCluster, open_store: OpenStore, tmp_path: Path
) -> None:
    store = await open_store(nats_cluster.url, replicas=3)
    projectors = [Projector(await open_store(nats_cluster.url, role="projector", replicas=3), tmp_path) for _ in range(2)]
    try:
        for projector in projectors:
            await projector.start()
        ids = await lives(store, 2 * len(ENDS))
        for stream in (store.config.events_stream, store.config.records_stream):
            loading = asyncio.create_task(lives(store, 2 * len(ENDS)))
            await call(store.link, f"STREAM.LEADER.STEPDOWN.{stream}")
            ids += await loading
        await eventually(lambda: relayed(Queries(store)), 15.0)
        await assert_events_complete(store, ids)
        expected = await counted(store)
        page = await Queries(store).queues(QueuesAsk())
        assert {queue.name: queue.counts.total for queue in page.queues if queue.name in expected} == {
            queue: sum(numbers.values()) for queue, numbers in expected.items()
        }
    finally:
        for projector in projectors:
            await projector.stop()


async def relayed(queries: Queries) -> bool:
    with contextlib.suppress(OjsError):
        await queries.until_relayed()
        return True
    return False
