"""How punctual delayed jobs are with many of them pending."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

from bench.load import Phase, drive
from bench.messages import timestamp
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import WAIT_MS, Arrivals, Waiter, fill, settle
from bench.scenarios.outcome import outcome
from bench.stats import quantiles

__all__ = ["run"]

_WAITERS: Final = 32
_COUNT: Final = 10
_PUSHES_PER_S: Final = 1_000
"""What the server is trusted to accept at least: the first job is due when all have been pushed at this rate."""
_LATE_S: Final = 10.0


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
    filled = await fill(bench, _pushes(bench, queue, due))
    spare = first_ms / 1000 - time.time()
    late_fill = [] if spare > 0 else [f"the last job was pushed {-spare:.1f} s after the first was due"]
    await asyncio.sleep(max(spare - 1, 0))

    phase = Phase()
    phase.errors.update({f"set-up: {name}": times for name, times in filled.errors.items()})
    arrivals = Arrivals(filled.jobs)
    held: list[str] = []
    waiters = [
        Waiter(
            bench.target,
            phase,
            bench.requests,
            bench.requests.fetch(queue, count=_COUNT, worker=f"bench-{index}", wait_ms=WAIT_MS),
            arrivals,
            held,
        )
        for index in range(_WAITERS)
    ]
    wall_offset = time.time() - time.perf_counter()
    spent = await drive(phase, waiters, seconds=1 + plan.spread + _LATE_S, meter=bench.meter)
    lateness = [at + wall_offset - due[number] / 1000 for number, at in arrivals.at.items()]
    phase.errors.update(arrivals.errors())
    if early := sum(late < 0 for late in lateness):
        phase.errors["fetched before due"] = early
    yield outcome(
        "delays",
        f"{plan.delayed:,} pending, due over {plan.spread:g} s",
        phase,
        spent,
        rate=False,
        latency=quantiles(lateness),
        more={"pushed per s": filled.rate},
        doubted=late_fill + (["the server doesn't hold a long poll"] if phase.empty else []),
    )
    await settle(bench, held)
