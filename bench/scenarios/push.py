"""How many jobs a second the server accepts one per request, and how long batches of growing size take."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import repeat

from bench.load import Phase, drive
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import Pusher
from bench.scenarios.outcome import connections_label, outcome


class _BatchPusher(Pusher):
    """Counts the jobs of each batch, not the requests."""

    jobs = 1

    def taken(self, body: bytes, now: float) -> None:  # noqa: ARG002 - the status says all
        self.phase.count(now, now - self.sent, self.jobs)


async def enqueue(bench: Bench) -> AsyncIterator[Result]:
    for number in bench.plan.connections:
        await bench.reset()
        phase = Phase()
        pushes = repeat(bench.requests.push(bench.queue("enqueue")))
        pushers = [Pusher(bench.target, phase, pushes) for _ in range(number)]
        spent = await drive(phase, pushers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        yield outcome("enqueue", connections_label(number), phase, spent, rate=True)


async def batch(bench: Bench) -> AsyncIterator[Result]:
    for size in bench.plan.batches:
        await bench.reset()
        phase = Phase()
        queue = bench.queue("batch")
        jobs = [{"type": "bench.job", "args": [number], "options": {"queue": queue}} for number in range(size)]
        pusher = _BatchPusher(bench.target, phase, repeat(bench.requests.post("/ojs/v1/jobs/batch", {"jobs": jobs})))
        pusher.jobs = size
        spent = await drive(phase, [pusher], seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        yield outcome("batch", f"{size:,} jobs", phase, spent, rate=True)
