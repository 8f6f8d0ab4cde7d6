"""What pools guarantee to each of their queues (docs/adr/029)."""

from __future__ import annotations

import pytest

from integration.samples import draft, fetch
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_features.pools.rules import Pool, Prevention
from ojs_features.pools.store import Pools
from support.outside import clock_of

pytestmark = pytest.mark.usefixtures("own_stores")

INTERVAL_MS = 5_000


def starved() -> float:
    """How often somebody was served only because of a wait."""
    return sum(child.value for child in metrics._STARVED._children.values())


async def taken(store: Store, *queues: str, number: int) -> list[str]:
    """The queue of each of the next jobs."""
    return [job.queue for _ in range(number) for job in await fetch(store, *queues)]


async def test_a_strict_pool_gives_every_queue_its_part(store: Store, queue: str) -> None:
    clock_of(store).stand()
    a, b = f"{queue}.a", f"{queue}.b"
    for name in (a, b):
        for _ in range(24):
            await store.enqueue.push(draft(queue=name))
    pool = Pool(name=queue, strategy="strict", weights={a: 1, b: 1}, prevention=Prevention(ratio=0.25))
    await store.of(Pools).put(pool)
    assert (await taken(store, a, b, number=20)).count(b) == 5
    await store.of(Pools).delete(queue)
    assert set(await taken(store, a, b, number=9)) == {a}, "left to right again"


async def test_a_starved_queue_of_a_pool_is_served_once_an_interval(store: Store, queue: str) -> None:
    a, b = f"{queue}.a", f"{queue}.b"
    for name in (a, b):
        for _ in range(9):
            await store.enqueue.push(draft(queue=name))
    prevention = Prevention(interval_ms=INTERVAL_MS, ratio=0.0)
    await store.of(Pools).put(Pool(name=queue, strategy="strict", weights={a: 1, b: 1}, prevention=prevention))
    clock, before = clock_of(store), starved()
    clock.stand()
    assert await taken(store, a, b, number=1) == [a]
    clock.ahead_ms = 1
    assert await taken(store, a, b, number=2) == [a] * 2
    clock.ahead_ms = INTERVAL_MS
    assert await taken(store, a, b, number=3) == [b, a, a]
    assert starved() - before == 1
    await store.of(Pools).delete(queue)
