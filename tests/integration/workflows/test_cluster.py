"""Workflows on three servers, whose replicas may be behind and whose leaders move."""

from __future__ import annotations

import pytest

from integration.conftest import OpenStore
from integration.workflows.flows import batch, chain, create, end, finish, group, job, members
from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import call
from ojs_features.workflows.coordinator import Coordinator
from ojs_features.workflows.store import Workflows
from support.cluster import NatsCluster
from support.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


async def test_workflows_run_on_a_cluster(nats_cluster: NatsCluster, open_store: OpenStore, queue: str) -> None:
    store = await open_store(nats_cluster.url, replicas=3)
    definition = {"type": "chain", "steps": [job("a", queue), group(queue, "b", "c"), batch(queue, "d", "e"), job("f", queue)]}
    name = await create(store, definition)
    stored = await finish(store, name, queue)
    assert stored.record.state == "completed"
    assert sorted(one.type for one in await members(store, name)) == ["a", "b", "c", "d", "e", "f", "on.complete", "on.success"]


async def test_leaders_may_move_while_workflows_run(nats_cluster: NatsCluster, open_store: OpenStore, queue: str) -> None:
    store = await open_store(nats_cluster.url, replicas=3)
    coordinators = [Coordinator(await open_store(nats_cluster.url, role="coordinator", replicas=3)) for _ in range(2)]
    for coordinator in coordinators:
        await coordinator.start()
    names = [await create(store, chain(queue, "a", "b", "c", "d", "e")) for _ in range(10)]
    rounds = 0

    async def all_have_ended() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds in {3, 8}:
            await call(store.nats, f"STREAM.LEADER.STEPDOWN.{store.config.records_stream}")
        try:
            await end(store, queue, number=20)
            return all([(await store.of(Workflows).get(name)).record.terminal for name in names])
        except OjsError:
            return False

    await eventually(all_have_ended, 60.0)
    for coordinator in coordinators:
        await coordinator.stop()
    for name in names:
        assert (await store.of(Workflows).get(name)).record.state == "completed"
        assert sorted(one.type for one in await members(store, name)) == ["a", "b", "c", "d", "e"]
