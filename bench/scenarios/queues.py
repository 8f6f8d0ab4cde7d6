"""What many queues cost: one for each tenant, with a few jobs of random priorities in each, pushed and fetched once.

The jobs go through a store in this process, as they do in a gateway, but without HTTP.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from bench.plan import Bench
from bench.records import draft
from bench.result import Result
from bench.scenarios.stored import opened_store
from ojs_core.base.ids import new_job_id
from ojs_core.jetstream.api import call
from ojs_core.store.store import Store

_AT_ONCE: Final = 32
_IDLE_S: Final = 45.0
"""Longer than a consumer that nobody uses stays."""
_SEED: Final = 29
_SAMPLE_S: Final = 0.5


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    chance = random.Random(_SEED)
    name = bench.queue("tenant")
    queues = [f"{name}.{number}" for number in range(bench.plan.queues)]
    priorities = [chance.randint(-100, 100) for _ in queues]
    async with opened_store(bench) as store:
        found: list[str] = []

        async def push(number: int) -> None:
            one = draft(new_job_id(store.clock.now()), queues[number])
            await store.jobs.push(replace(one, priority=priorities[number]))

        async def fetch(number: int) -> None:
            jobs = await store.dispatcher.fetch([queues[number]], 10, "bench", None, 0)
            found.extend(job.id for job in jobs)

        async def idle(_number: int) -> None:
            await asyncio.sleep(_IDLE_S)

        order = list(range(len(queues)))
        yield await _stretch(bench, store, "push", push, order)
        chance.shuffle(order)
        yield await _stretch(bench, store, "fetch", fetch, order, missing=lambda: len(queues) - len(found))
        yield await _stretch(bench, store, "idle", idle, [0])
    await bench.reset()


async def _stretch(
    bench: Bench,
    store: Store,
    variant: str,
    step: Callable[[int], Awaitable[None]],
    numbers: Sequence[int],
    missing: Callable[[], int] = lambda: 0,
) -> Result:
    """Do a step for each number, some at once; `missing` says afterwards how many jobs should have come and did not."""
    before = bench.meter.read()
    sampling = asyncio.create_task(_most_consumers(store))
    left = iter(numbers)
    await asyncio.gather(*(_worker(left, step) for _ in range(_AT_ONCE)))
    sampling.cancel()
    [most] = await asyncio.gather(sampling)
    spent = bench.meter.spent(before)
    lost = missing()
    return Result(
        scenario="queues",
        variant=variant,
        jobs=len(numbers),
        seconds=spent.seconds,
        rate=len(numbers) / spent.seconds,
        more={"consumers, most": most, "consumers, at the end": await _consumers(store)},
        errors={"never fetched": lost} if lost else {},
        spent=spent,
    )


async def _worker(numbers: Iterator[int], step: Callable[[int], Awaitable[None]]) -> None:
    for number in numbers:
        await step(number)


async def _most_consumers(store: Store) -> int:
    """How many consumers the queues had together at most; to be cancelled."""
    most = 0
    try:
        while True:
            most = max(most, await _consumers(store))
            await asyncio.sleep(_SAMPLE_S)
    except asyncio.CancelledError:
        return most


async def _consumers(store: Store) -> int:
    info = await call(store.nats, f"STREAM.INFO.{store.config.ready_stream}")
    return int(info["state"]["consumer_count"])
