from __future__ import annotations

import asyncio
from functools import partial

import pytest

from integration.conftest import OpenStore
from integration.limits.test_limits import ids, push
from integration.samples import acked, attempt, draft, fetch, set_up
from ojs_engine.domain import transitions
from ojs_features.limits.loop import blocked_jobs_loop
from support.cluster import NatsCluster
from support.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


async def test_pause_bound_and_limit_hold_on_three_servers(
    nats_cluster: NatsCluster, open_store: OpenStore, queue: str
) -> None:
    store, other = [await open_store(nats_cluster.url, replicas=3) for _ in range(2)]
    keeper = blocked_jobs_loop(other)
    await keeper.start()
    try:
        name = f"cluster-{queue}"
        # Which ones isn't said: after an election a server may not know of records yet whose tokens it has.
        await push(store, name, name, 5, concurrency=2)
        found = [*await fetch(store, name, count=3), *await fetch(other, name, count=3)]
        assert len(set(ids(found))) == len(found) == 2
        for job in found:
            await other.jobs.change(job.id, acked)
        [following] = await eventually(lambda: fetch(other, name, count=1))
        assert following.id not in ids(found)

        await store.queues.pause(f"{name}.p")
        await store.enqueue.push(draft(queue=f"{name}.p"))
        assert await fetch(other, f"{name}.p") == []
        await store.queues.resume(f"{name}.p")
        assert len(await eventually(lambda: fetch(other, f"{name}.p"))) == 1

        bounded = f"{name}.b"
        await set_up([store, other], bounded, max_size=4)
        pushed = await asyncio.gather(*(attempt((store, other)[n % 2], bounded) for n in range(10)))
        assert sum(job is not None for job in pushed) == 4

        taken = await fetch(store, bounded, count=2)
        jobs = [await one.enqueue.push(draft(queue=bounded)) for one in (other, store)]
        assert await attempt(store, bounded) is None
        for one, job in zip((store, other), jobs, strict=True):
            await one.jobs.change(job.id, transitions.cancel)
        for one in (other, store):
            await eventually(partial(attempt, one, bounded))
        assert await attempt(store, bounded) is None
        left = await eventually(lambda: fetch(other, bounded, count=9))
        assert {job.id for job in left}.isdisjoint(ids([*taken, *jobs]))
    finally:
        await keeper.stop()
