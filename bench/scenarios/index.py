"""The index over many records: how fast it is built from nothing, and how soon it answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.load import Phase, drive
from bench.plan import Bench
from bench.processes import resident_mib
from bench.reader import Reader
from bench.records import QUEUES, TYPES, records, store_records
from bench.result import Result
from bench.scenarios.outcome import outcome
from bench.scenarios.stored import caught_up, opened_store
from ojs_core.read.client import Queries
from ojs_core.store.store import Store
from ojs_projector.projector import Projector

REBUILT: Final = "built from nothing"

_CONNECTIONS: Final = 4
_LIMIT_S: Final = 600.0
_LOOK_S: Final = 0.01
"""Between two looks at the progress, which this process measures beside its work."""
_ASKED: Final = 10
_STATES: Final = ("completed", "discarded", "cancelled", "scheduled")

_ASKED_FOR: Final = {
    "queue stats": [f"/ojs/v1/queues/{queue}/stats" for queue in QUEUES],
    "job lists": [
        "/ojs/v1/jobs?limit=50",
        *(f"/ojs/v1/jobs?limit=50&state={state}" for state in _STATES),
        *(f"/ojs/v1/jobs?limit=50&queue={queue}&type={job_type}" for queue in QUEUES[:2] for job_type in TYPES),
    ],
    "dead letters": ["/ojs/v1/dead-letter?limit=50", *(f"/ojs/v1/dead-letter?limit=50&queue={queue}" for queue in QUEUES[:3])],
}


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    number = bench.plan.records
    async with opened_store(bench) as store:
        await store_records(store, records(number, store.clock.now()))
        await caught_up(store)
        yield await rebuilt(bench, store, number)
    for name, paths in _ASKED_FOR.items():
        phase = Phase()
        shared = cycle(paths)
        readers = [Reader(bench.target, phase, bench.requests, shared) for _ in range(_CONNECTIONS)]
        spent = await drive(phase, readers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        yield outcome("index", f"{name} of {number:,} jobs", phase, spent, rate=True)
    await bench.reset()


async def rebuilt(bench: Bench, store: Store, number: int, scenario: str = "index") -> Result:
    """One more projector, in this process, with an empty folder; the system's own goes on relaying events."""
    before = bench.meter.read()
    size_mib = resident_mib()
    progress: set[float] = set()
    errors: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="ojs-bench-") as folder:
        projector = Projector(store, Path(folder))
        begun = perf_counter()
        await projector.start()
        try:
            while (status := projector.status()).partial and perf_counter() - begun < _LIMIT_S:
                progress.add(status.progress)
                await asyncio.sleep(_LOOK_S)
            took = perf_counter() - begun
            # Both answer, now one, now the other.
            found = [(await Queries(store).totals()) for _ in range(_ASKED)]
        finally:
            await projector.stop()
    if wrong := sum(totals.counts.total != number or totals.partial for totals in found):
        errors["wrong totals"] = wrong
    if len(progress) < 2:
        errors["no progress was shown"] = 1
    return Result(
        scenario=scenario,
        variant=REBUILT,
        jobs=number,
        seconds=took,
        rate=number / took,
        more={"seconds": took, "steps of progress": len(progress), "grown by MiB": resident_mib() - size_mib},
        errors=errors,
        spent=bench.meter.spent(before),
    )
