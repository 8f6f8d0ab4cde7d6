"""How fast a backlog is fetched, and how fast what was fetched is acknowledged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import repeat
from typing import Final

from bench.client import Target
from bench.load import Looper, Phase, drive
from bench.messages import fetched_jobs
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import Acker, fill, settle
from bench.scenarios.outcome import connections_label, outcome

_EMPTY_PAUSE_S: Final = 0.005
_STUCK_S: Final = 1.0


class _Fetcher(Looper):
    """Fetches until the fetchers together have `wanted` ids."""

    def __init__(self, target: Target, phase: Phase, request: bytes, ids: list[str], wanted: int) -> None:
        super().__init__(target, phase)
        self._request = request
        self._ids = ids
        self._wanted = wanted
        self._pause_s = 0.0

    def next_request(self) -> bytes | None:
        return self._request if len(self._ids) < self._wanted else None

    def taken(self, body: bytes, now: float) -> None:
        jobs = fetched_jobs(body)
        self._pause_s = 0.0 if jobs else _EMPTY_PAUSE_S
        if jobs:
            self._ids.extend(job.id for job in jobs)
            self.phase.count(now, now - self.sent, len(jobs))
        else:
            self.phase.empty += 1

    def pause_s(self) -> float:
        return self._pause_s


async def run(bench: Bench) -> AsyncIterator[Result]:
    for number in bench.plan.connections:
        for count in bench.plan.counts:
            async for result in _drain(bench, number, count):
                yield result


async def _drain(bench: Bench, number: int, count: int) -> AsyncIterator[Result]:
    await bench.reset()
    queue = bench.queue("drain")
    variant = f"{connections_label(number)}, count {count}"
    filled = await fill(bench, repeat(bench.requests.push(queue), bench.plan.backlog))
    ids: list[str] = []
    phase = Phase()
    phase.errors.update({f"set-up: {name}": times for name, times in filled.errors.items()})
    fetchers = [
        _Fetcher(bench.target, phase, bench.requests.fetch(queue, count=count, worker=f"bench-{index}"), ids, filled.jobs)
        for index in range(number)
    ]
    spent = await drive(phase, fetchers, seconds=bench.plan.duration, meter=bench.meter)
    twice = len(ids) - len(set(ids))
    if twice:
        phase.errors["handed out twice"] = twice
    idle = phase.until - phase.last
    left = filled.jobs - len(ids)
    stuck = [f"no job in the last {idle:.1f} s, {left} left"] if not phase.exhausted and idle > _STUCK_S else []
    yield outcome("fetch", variant, phase, spent, rate=True, more={"empty answers": phase.empty}, doubted=stuck)

    acks = Phase()
    ackers = [Acker(bench.target, acks, bench.requests, ids) for _ in range(number)]
    spent = await drive(acks, ackers, seconds=bench.plan.duration, meter=bench.meter)
    yield outcome("ack", variant, acks, spent, rate=True)
    await settle(bench, ids)
