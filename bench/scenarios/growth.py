"""Whether a job costs the same beside many stored jobs, and whether it matters over how many queues they are spread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import cycle
from typing import Final

from bench.client import Target
from bench.load import Phase, drive
from bench.messages import Requests
from bench.plan import Bench
from bench.population import population
from bench.records import store_records
from bench.result import Result
from bench.scenarios.outcome import outcome
from bench.scenarios.stored import caught_up, opened_store
from bench.scenarios.whole import Cycler

_CONNECTIONS: Final = 16
_FIRST: Final = 1_000
_STEP: Final = 10


class _Roamer(Cycler):
    """Takes another queue for each job, of those that all roamers share: nobody else fetches from it meanwhile."""

    def __init__(self, target: Target, phase: Phase, requests: Requests, queues: Iterator[str], index: int) -> None:
        super().__init__(target, phase, requests, [next(queues)], index)
        self._queues = queues

    def gave_up(self) -> None:
        super().gave_up()
        self.use([next(self._queues)])


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    async with opened_store(bench) as store:
        there = 0
        for number in _steps(_FIRST, bench.plan.records):
            await store_records(store, population(number - there, store.clock.now()))
            await caught_up(store)
            there = number
            yield await _whole(bench, f"{number:,} stored", [bench.queue("growth")])
    await bench.reset()
    for number in _steps(1, bench.plan.queues):
        name = bench.queue("growth")
        yield await _whole(
            bench, f"{number:,} queue{'' if number == 1 else 's'}", [f"{name}.{place}" for place in range(number)]
        )
    await bench.reset()


def _steps(first: int, last: int) -> Iterable[int]:
    number = first
    while number < last:
        yield number
        number *= _STEP
    yield last


async def _whole(bench: Bench, variant: str, queues: list[str]) -> Result:
    phase = Phase()
    shared = cycle(queues)
    roamers = [_Roamer(bench.target, phase, bench.requests, shared, index) for index in range(_CONNECTIONS)]
    # Each queue is new once, which isn't what is measured.
    warmup = bench.plan.warmup + len(queues) / 1_000
    spent = await drive(phase, roamers, seconds=bench.plan.duration, warmup=warmup, meter=bench.meter)
    return outcome("growth", variant, phase, spent, rate=True, more={"empty answers": phase.empty})
