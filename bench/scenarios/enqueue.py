"""How many jobs a second the server accepts, one per request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import repeat

from bench.load import Phase, drive
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import Pusher
from bench.scenarios.outcome import connections_label, outcome


async def run(bench: Bench) -> AsyncIterator[Result]:
    for number in bench.plan.connections:
        await bench.reset()
        phase = Phase()
        pushes = repeat(bench.requests.push(bench.queue("enqueue")))
        pushers = [Pusher(bench.target, phase, pushes) for _ in range(number)]
        spent = await drive(phase, pushers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        yield outcome("enqueue", connections_label(number), phase, spent, rate=True)
