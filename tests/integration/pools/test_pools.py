from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from integration.samples import draft, fetch, refusal
from ojs_engine.base.errors import OjsError
from ojs_engine.store.store import Store
from ojs_features.pools.rules import Pool
from ojs_features.pools.store import Pools
from support.calls import calls_of_features
from support.waiting import eventually


async def filled(store: Store, *queues: str, number: int = 60) -> None:
    for queue in queues:
        for _ in range(number):
            await store.enqueue.push(draft(queue=queue))


@pytest.mark.parametrize("count", [1, 8])
async def test_a_pools_queues_share_a_fetch_by_their_weights(store: Store, other: Store, queue: str, count: int) -> None:
    a, b = f"{queue}.a", f"{queue}.b"
    await filled(store, a, b)
    await store.of(Pools).put(Pool(name=queue, strategy="weighted", weights={a: 3, b: 1}))

    async def known() -> bool:
        return queue in [pool.name for pool in await other.of(Pools).all()]

    await eventually(known)
    found: Counter[str] = Counter()
    for _ in range(40 // count):
        found.update(job.queue for job in await fetch(other, b, a, count=count))
    assert found == {a: 30, b: 10}
    await store.of(Pools).delete(queue)


async def test_of_two_pools_that_claim_a_queue_at_the_same_time_one_gets_it(store: Store, other: Store, queue: str) -> None:
    for turn in range(20):
        names = [f"{queue}.{turn}.{side}" for side in "ab"]
        claims = [Pool(name=name, strategy="weighted", weights={queue: 1}) for name in names]
        ended = await asyncio.gather(store.of(Pools).put(claims[0]), other.of(Pools).put(claims[1]), return_exceptions=True)
        refused = [one for one in ended if isinstance(one, OjsError)]
        assert [one.canonical for one in refused] == ["POOL_CONFLICT"], ended
        for name, one in zip(names, ended, strict=True):
            if not isinstance(one, BaseException):
                await store.of(Pools).delete(name)


async def test_new_weights_hold_from_the_next_fetch_on_whatever_the_old_ones_owed(store: Store, queue: str) -> None:
    a, b = f"{queue}.a", f"{queue}.b"
    await filled(store, a, b)
    await store.of(Pools).put(Pool(name=queue, strategy="weighted", weights={a: 50, b: 1}))
    assert len(await fetch(store, a, b, count=8)) == 8
    await fetch(store, b, a, count=1)
    await store.of(Pools).put(Pool(name=queue, strategy="weighted", weights={a: 1, b: 9}))
    found = await fetch(store, a, b, count=20)
    assert Counter(job.queue for job in found) == {a: 2, b: 18}
    await store.of(Pools).delete(queue)


async def test_an_isolated_pool_serves_only_workers_that_name_it(store: Store, other: Store, queue: str) -> None:
    a, b = f"{queue}.a", f"{queue}.b"
    await filled(store, a, b, number=4)
    await store.of(Pools).put(Pool(name=queue, strategy="strict", weights={a: 1}, isolated=True))

    async def known() -> bool:
        return queue in [pool.name for pool in await other.of(Pools).all()]

    await eventually(known)
    for one in (store, other):
        assert [job.queue for job in await fetch(one, a, b)] == [b]
        assert [job.queue for job in await fetch(one, a, b, pool="another")] == [b]
        assert [job.queue for job in await fetch(one, a, b, pool=queue)] == [a]
    waiting = asyncio.create_task(fetch(other, a, wait_ms=60_000))
    await store.of(Pools).put(Pool(name=queue, strategy="strict", weights={a: 1}))
    assert [job.queue for job in await waiting] == [a]
    await store.of(Pools).delete(queue)


async def test_what_one_queue_lacks_the_others_give(store: Store, queue: str) -> None:
    a, b = f"{queue}.a", f"{queue}.b"
    await filled(store, a, number=10)
    await filled(store, b, number=1)
    await store.of(Pools).put(Pool(name=queue, strategy="round-robin", weights={a: 1, b: 1}))
    found = await fetch(store, a, b, count=8)
    assert Counter(job.queue for job in found) == {a: 7, b: 1}
    await store.queues.pause(a)
    assert await fetch(store, a, b, count=8) == []
    await store.of(Pools).delete(queue)


async def test_without_a_pool_queues_are_served_from_left_to_right(store: Store, queue: str) -> None:
    a, b = f"{queue}.a", f"{queue}.b"
    await filled(store, a, b, number=5)
    await store.of(Pools).put(Pool(name=queue, strategy="weighted", weights={a: 1}))  # not both of them
    found = await fetch(store, b, a, count=6)
    assert [job.queue for job in found] == [b] * 5 + [a]
    await store.of(Pools).delete(queue)


async def test_a_queue_is_in_one_pool_only(store: Store, queue: str) -> None:
    before, pool = await store.of(Pools).put(Pool(name=queue, weights={queue: 1}))
    assert before is None
    assert (await store.of(Pools).put(Pool(name=queue, weights={queue: 2})))[0] == pool
    await store.of(Pools).all()
    with refusal("conflict"):
        await store.of(Pools).put(Pool(name=f"{queue}.2", weights={queue: 1}))
    await store.of(Pools).delete(queue)
    with refusal("not_found"):
        await store.of(Pools).get(queue)


async def test_a_fetch_from_queues_of_no_pool_enters_no_module_of_pools(store: Store, queue: str) -> None:
    a, b = f"{queue}.a", f"{queue}.b"
    await filled(store, a, b, number=2)
    await store.of(Pools).put(Pool(name=queue, strategy="weighted", weights={a: 1}))
    await fetch(store, b)
    with calls_of_features() as calls:
        assert [job.queue for job in await fetch(store, b)] == [b]
    assert not calls
    with calls_of_features() as calls:
        assert [job.queue for job in await fetch(store, a)] == [a]
    assert "pools/store.py: Pools.open_to" in calls
    await store.of(Pools).delete(queue)
