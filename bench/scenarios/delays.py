"""How punctual delayed jobs are with many of them pending."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

from bench.messages import timestamp
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import fill
from bench.scenarios.lateness import lateness

_PUSHES_PER_S: Final = 1_000
"""What the server is trusted to accept at least: the first job is due when all have been pushed at this rate."""


def _due_times(number: int, first_ms: int, spread_s: float) -> list[int]:
    """When each job is due (Unix ms), evenly spread."""
    return [first_ms + int(index * spread_s * 1000 / number) for index in range(number)]


def _pushes(bench: Bench, queue: str, due: list[int]) -> Iterator[bytes]:
    """In random order, always the same one: timers that come sorted would flatter the server."""
    numbers = list(range(len(due)))
    random.Random(1).shuffle(numbers)
    return (bench.requests.push(queue, number, delay_until=timestamp(due[number])) for number in numbers)


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    plan = bench.plan
    queue = bench.queue("delays")
    first_ms = int(time.time() * 1000) + 2_000 + plan.delayed * 1000 // _PUSHES_PER_S
    due = _due_times(plan.delayed, first_ms, plan.spread)
    yield await lateness(
        bench,
        "delays",
        f"{plan.delayed:,} pending, due over {plan.spread:g} s",
        queue,
        await fill(bench, _pushes(bench, queue, due)),
        filled_as="pushed per s",
        first_s=first_ms / 1000,
        spread_s=plan.spread,
        due_s=lambda number: due[number] / 1000,
    )
