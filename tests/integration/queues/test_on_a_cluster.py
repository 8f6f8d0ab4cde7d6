from __future__ import annotations

import asyncio

import pytest

from integration.conftest import OpenStore
from integration.queues.test_limits import ids, push
from integration.samples import acked, draft, fetch
from ojs_nats.errors import OjsError
from ojs_nats.queues import QueueConfig, configured
from ojs_scheduler.limits import LimitKeeper
from support.cluster import NatsCluster
from support.waiting import eventually

pytestmark = pytest.mark.cluster


async def test_pause_bound_and_limit_hold_on_three_servers(
    nats_cluster: NatsCluster, open_store: OpenStore, queue: str
) -> None:
    store, other = [await open_store(nats_cluster.url, replicas=3) for _ in range(2)]
    keeper = LimitKeeper(other)
    await keeper.start()
    try:
        name = f"cluster-{queue}"
        jobs = await push(store, name, name, 5, concurrency=2)
        found = [*await fetch(store, name, count=3), *await fetch(other, name, count=3)]
        assert ids(found) == ids(jobs[:2])
        for job in found:
            await other.jobs.change(job.id, acked)
        assert ids(await eventually(lambda: fetch(other, name, count=1))) == ids(jobs[2:3])

        await store.queues.pause(f"{name}.p")
        await store.jobs.push(draft(queue=f"{name}.p"))
        assert await fetch(other, f"{name}.p") == []
        await store.queues.resume(f"{name}.p")
        assert len(await eventually(lambda: fetch(other, f"{name}.p"))) == 1

        bounded = f"{name}.b"
        await store.queues.change(bounded, lambda old, moment: configured(old, bounded, QueueConfig(max_size=4), moment))
        await eventually(lambda: other.queues.bound(bounded))

        async def attempt(n: int) -> bool:
            try:
                await (store, other)[n % 2].jobs.push(draft(queue=bounded))
            except OjsError as error:
                if error.code != "queue_full":
                    raise
                return False
            return True

        await other.queues.settings(bounded)
        assert sum(await asyncio.gather(*(attempt(n) for n in range(10)))) == 4
    finally:
        await keeper.stop()
