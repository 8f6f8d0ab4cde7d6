"""Starvation prevention where it is configured, and exact order where it isn't (docs/adr/029)."""

from __future__ import annotations

import pytest

from integration.samples import configure, draft, fetch
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from support.outside import clock_of

pytestmark = pytest.mark.usefixtures("own_stores")

INTERVAL_MS = 5_000


def starved() -> float:
    """How often somebody was served only because of a wait."""
    return sum(child.value for child in metrics._STARVED._children.values())


async def test_a_passed_over_priority_has_its_turn_and_no_other_job_comes_early(store: Store, queue: str) -> None:
    clock = clock_of(store)
    clock.stand()
    await configure(store, queue, rotation_ms=INTERVAL_MS)
    await store.queues.settings(queue)
    for priority in (10, 5, -5):
        for _ in range(15):
            await store.enqueue.push(draft(queue=queue, priority=priority))

    async def priorities(number: int, count: int = 1) -> list[int]:
        return [job.priority for _ in range(number) for job in await fetch(store, queue, count=count)]

    before = starved()
    assert await priorities(3) == [10] * 3
    clock.ahead_ms = INTERVAL_MS - 1
    assert await priorities(2) == [10] * 2, "nobody has waited for the whole interval"
    clock.ahead_ms = INTERVAL_MS
    assert await priorities(4) == [5, -5, 10, 10], "each of them once"
    clock.ahead_ms = 2 * INTERVAL_MS
    assert await priorities(1, count=4) == [10, 5, -5, 10], "within one fetch, too; they have waited for the same time"
    clock.ahead_ms = 3 * INTERVAL_MS
    await store.enqueue.push(draft(queue=queue, priority=99))
    assert await priorities(5) == [10, 5, -5, 99, 10], "a level that is new has not waited"
    assert starved() - before == 7, "5 and -5 three times, and 10 ahead of 99"


async def test_without_it_a_low_priority_waits_as_long_as_there_is_a_higher_one(store: Store, queue: str) -> None:
    clock = clock_of(store)
    clock.stand()
    for priority in (1, 0):
        for _ in range(4):
            await store.enqueue.push(draft(queue=queue, priority=priority))
    found = []
    for _ in range(4):
        clock.ahead_ms += 10 * INTERVAL_MS
        found += [job.priority for job in await fetch(store, queue)]
    assert found == [1] * 4
