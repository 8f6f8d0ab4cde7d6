"""What workers cost that wait for jobs of which there are none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Final

from bench.client import Target
from bench.load import Looper, Phase, drive
from bench.messages import fetched_jobs
from bench.plan import Bench
from bench.processes import GENERATOR
from bench.result import Result
from bench.scenarios.outcome import outcome

_WAIT_MS: Final = 30_000
_OF_ONE: Final = 10
"""Queues that each worker names."""
_QUEUES: Final = 100
_WARMUP_S: Final = 3.0


class Watch(Phase):
    """Ends with its window, whoever still waits then."""

    def open_window(self, seconds: float) -> None:
        super().open_window(seconds)
        asyncio.get_running_loop().call_later(seconds, self._end)

    def _end(self) -> None:
        self.last = perf_counter()
        self.finish()


class _Poller(Looper):
    def __init__(self, target: Target, phase: Phase, request: bytes) -> None:
        super().__init__(target, phase)
        self._request = request

    def next_request(self) -> bytes:
        return self._request

    def taken(self, body: bytes, now: float) -> None:
        if fetched_jobs(body):
            self.phase.errors["a job that nobody pushed"] += 1
        self.phase.count(now, now - self.sent, 0)


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    phase = Watch()
    name = bench.queue("idle")
    queues = [f"{name}-{place}" for place in range(_QUEUES)]
    pollers = []
    for index in range(bench.plan.pollers):
        named = [queues[(index + place) % _QUEUES] for place in range(_OF_ONE)]
        request = bench.requests.fetch(*named, count=1, worker=f"bench-{index}", wait_ms=_WAIT_MS)
        pollers.append(_Poller(bench.target, phase, request))

    spent = await drive(phase, pollers, seconds=2 * bench.plan.duration, warmup=_WARMUP_S, meter=bench.meter)
    cores = {} if spent is None else {name: used.cpu_s / spent.seconds for name, used in spent.processes.items()}
    more = {"cores": sum(used for name, used in cores.items() if name != GENERATOR)} if cores else {}
    variant = f"{bench.plan.pollers:,} polls of {_OF_ONE} queues"
    yield outcome("idle", variant, phase, spent, rate=False, sampled=False, more=more)
