"""What finished jobs leave behind: memory of each process, and bytes on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import repeat
from time import perf_counter
from typing import Final

from bench.disk import grown, sizes
from bench.load import Phase, drive
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import Arrivals, Pusher, Waiter
from bench.scenarios.outcome import outcome

_BATCH: Final = 1_000
_WORKERS: Final = 32
_AT_ONCE: Final = 50
_LIMIT_S: Final = 600.0
_SETTLED_S: Final = 5.0
"""After the last job: the projector has it, and SQLite's log is in its file."""


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    number, queue = bench.plan.finished, bench.queue("footprint")
    before, began = await asyncio.to_thread(sizes, bench.data), bench.meter.read()
    pushing = Phase()
    for first in range(0, number, _BATCH):
        numbers = range(first, min(first + _BATCH, number))
        jobs = [{"type": "bench.job", "args": [place], "options": {"queue": queue}} for place in numbers]
        batch = repeat(bench.requests.post("/ojs/v1/jobs/batch", {"jobs": jobs}), 1)
        await drive(pushing, [Pusher(bench.target, pushing, batch)], seconds=_LIMIT_S)
    phase, arrivals = Phase(), Arrivals(number)
    phase.errors.update(pushing.errors)
    started = perf_counter()
    waiters = [
        Waiter(
            bench.target,
            phase,
            bench.requests,
            bench.requests.fetch(queue, count=_AT_ONCE, worker=f"bench-{index}"),
            arrivals,
            held=None,
        )
        for index in range(_WORKERS)
    ]
    await drive(phase, waiters, seconds=_LIMIT_S)
    await asyncio.sleep(_SETTLED_S)
    phase.errors.update(arrivals.errors())
    more = {
        f"{part}, bytes/job": size / number for part, size in grown(before, await asyncio.to_thread(sizes, bench.data)).items()
    }
    more["s until all were fetched"] = phase.last - started
    yield outcome("footprint", f"{number:,} finished", phase, bench.meter.spent(began), rate=False, more=more)
