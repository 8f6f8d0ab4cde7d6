"""Producers and workers at once, as in production: several queues, workers that take ten jobs and return them one by one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from time import perf_counter
from typing import Final

from bench.client import Target
from bench.load import Looper, Phase, drive
from bench.messages import FetchedJob, Requests, fetched_jobs
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import WAIT_MS
from bench.scenarios.outcome import outcome

_PRODUCERS: Final = 8
_WORKERS: Final = 24
_QUEUES: Final = 4
_AT_ONCE: Final = 10
_MOST_WAITING: Final = 1_000
"""Producers pause while so many jobs are on their way: what is measured is how fast all of it goes, not a backlog."""
_PAUSE_S: Final = 0.005


class _Producer(Looper):
    """Pushes jobs, each with a number under which `sent` has the time of its push."""

    def __init__(
        self, target: Target, phase: Phase, requests: Requests, queue: str, numbers: Iterator[int], sent: dict[int, float]
    ) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._queue = queue
        self._numbers = numbers
        self._sent = sent

    def next_request(self) -> bytes:
        number = next(self._numbers)
        self._sent[number] = perf_counter()
        return self._requests.push(self._queue, number)

    def taken(self, body: bytes, now: float) -> None:
        """Counted when it is acknowledged."""

    def pause_s(self) -> float:
        return _PAUSE_S if len(self._sent) > _MOST_WAITING else 0.0


class _Worker(Looper):
    def __init__(
        self, target: Target, phase: Phase, requests: Requests, queues: Sequence[str], index: int, sent: dict[int, float]
    ) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._fetch = requests.fetch(*queues, count=_AT_ONCE, worker=f"bench-{index}", wait_ms=WAIT_MS)
        self._sent = sent
        self._held: list[FetchedJob] = []
        self._acked: FetchedJob | None = None

    def next_request(self) -> bytes:
        self._acked = self._held.pop() if self._held else None
        return self._fetch if self._acked is None else self._requests.ack(self._acked.id)

    def taken(self, body: bytes, now: float) -> None:
        if self._acked is None:
            self._held = fetched_jobs(body)
            self.phase.empty += not self._held
        elif (began := self._sent.pop(self._acked.args[0], None)) is None:
            self.phase.errors["handed out twice"] += 1
        else:
            self.phase.count(now, now - began)


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    phase = Phase()
    name = bench.queue("mixed")
    queues = [f"{name}-{place}" for place in range(_QUEUES)]
    numbers, sent = count(), dict[int, float]()
    loopers: list[Looper] = [
        _Producer(bench.target, phase, bench.requests, queues[index % _QUEUES], numbers, sent) for index in range(_PRODUCERS)
    ]
    loopers += [_Worker(bench.target, phase, bench.requests, queues, index, sent) for index in range(_WORKERS)]
    spent = await drive(phase, loopers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
    variant = f"{_PRODUCERS} producers, {_WORKERS} workers"
    yield outcome("mixed", variant, phase, spent, rate=True, more={"empty answers": phase.empty})
