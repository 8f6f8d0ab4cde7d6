"""How many jobs a second go the whole way when every connection pushes, fetches and acknowledges in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from time import perf_counter

from bench.client import Target
from bench.load import Looper, Phase, drive
from bench.messages import Requests, fetched_jobs
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import WAIT_MS
from bench.scenarios.outcome import connections_label, outcome


class Cycler(Looper):
    """push, fetch, ack. Others fetch from the same queues, so the fetched job is usually another connection's."""

    def __init__(self, target: Target, phase: Phase, requests: Requests, queues: Sequence[str], index: int) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._index = index
        self._began = 0.0
        self._pushed = False
        self._job: str | None = None
        self.use(queues)

    def use(self, queues: Sequence[str]) -> None:
        """Push to one of these queues from now on, and fetch from all."""
        self._push = self._requests.push(queues[self._index % len(queues)])
        self._fetch = self._requests.fetch(*queues, count=1, worker=f"bench-{self._index}", wait_ms=WAIT_MS)

    def next_request(self) -> bytes:
        if self._job is not None:
            return self._requests.ack(self._job)
        if self._pushed:
            return self._fetch
        self._began = perf_counter()
        return self._push

    def taken(self, body: bytes, now: float) -> None:
        if self._job is not None:
            self.phase.count(now, now - self._began)
            self.gave_up()
        elif not self._pushed:
            self._pushed = True
        elif jobs := fetched_jobs(body):
            self._job = jobs[0].id
        else:
            self.phase.empty += 1

    def gave_up(self) -> None:
        self._pushed = False
        self._job = None


async def run(bench: Bench) -> AsyncIterator[Result]:
    for number in bench.plan.connections:
        await bench.reset()
        phase = Phase()
        queue = bench.queue("whole")
        cyclers = [Cycler(bench.target, phase, bench.requests, [queue], index) for index in range(number)]
        spent = await drive(phase, cyclers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        yield outcome("whole", connections_label(number), phase, spent, rate=True, more={"empty answers": phase.empty})
