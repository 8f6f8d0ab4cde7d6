"""What it costs that a fetch names many queues, all of which have jobs now and then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from bench.load import Phase, drive
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.outcome import outcome
from bench.scenarios.whole import Cycler

_CONNECTIONS: Final = 16
_QUEUES: Final = (1, 20, 100)


async def run(bench: Bench) -> AsyncIterator[Result]:
    for number in _QUEUES:
        await bench.reset()
        phase = Phase()
        name = bench.queue("wide")
        queues = [f"{name}-{place}" for place in range(number)]
        cyclers = [Cycler(bench.target, phase, bench.requests, queues, index) for index in range(_CONNECTIONS)]
        spent = await drive(phase, cyclers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        label = f"{number} queue{'' if number == 1 else 's'}"
        yield outcome("wide", label, phase, spent, rate=True, more={"empty answers": phase.empty})
