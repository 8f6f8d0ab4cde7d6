"""How soon an idle system hands a new job to a worker that waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from time import perf_counter
from typing import Final

from bench.client import Connection, Target
from bench.load import Phase, drive
from bench.messages import error_name
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import WAIT_MS, Arrivals, Waiter
from bench.scenarios.outcome import outcome
from bench.stats import from_schedule, quantiles

_WAITERS: Final = 4
_SENDERS: Final = 4
_WARMUP_S: Final = 1.0
_LATE_S: Final = 5.0
_AHEAD_S: Final = 0.0005


class _Senders:
    """Sends numbered pushes when they are due, over a few connections; a push that finds none free waits for one."""

    def __init__(self, bench: Bench, phase: Phase, pushes: Sequence[bytes]) -> None:
        self.sent: dict[int, float] = {}
        self._pushes = pushes
        self._errors = phase.errors
        self._due: deque[int] = deque()
        self._all = [_Sender(bench.target, self) for _ in range(_SENDERS)]

    async def open(self) -> None:
        for sender in self._all:
            await sender.open()

    def close(self) -> None:
        for sender in self._all:
            sender.close()

    def push(self, index: int) -> None:
        self._due.append(index)
        self.send()

    def send(self) -> None:
        """Send what is due and can be sent."""
        while self._due and (free := next((sender for sender in self._all if sender.connected and not sender.busy), None)):
            index = self._due.popleft()
            self.sent[index] = perf_counter()
            free.send(self._pushes[index])

    def went_wrong(self, what: str) -> None:
        self._errors[what] += 1


class _Sender(Connection):
    def __init__(self, target: Target, senders: _Senders) -> None:
        super().__init__(target)
        self._senders = senders

    def answered(self, status: int, body: bytes) -> None:
        if status != 201:
            self._senders.went_wrong(error_name(status, body))
        self._senders.send()

    def failed(self, reason: str) -> None:
        self._senders.went_wrong(reason)

    def reconnected(self) -> None:
        self._senders.send()


async def _keep_schedule(senders: _Senders, schedule: Sequence[float]) -> None:
    """Push number i at `schedule[i]` (`perf_counter`).

    The loop's own timers have a resolution of 1 ms, a third of what is to be measured. So a sleeping thread wakes the
    loop a little early, and the loop spins for the rest.
    """
    loop = asyncio.get_running_loop()
    stop = threading.Event()

    def push(index: int) -> None:
        while perf_counter() < schedule[index]:
            pass
        senders.push(index)

    def pace() -> None:
        for index, at in enumerate(schedule):
            if stop.wait(max(at - _AHEAD_S - perf_counter(), 0.0)):
                return
            loop.call_soon_threadsafe(push, index)

    try:
        await asyncio.to_thread(pace)
    finally:
        stop.set()


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    plan = bench.plan
    queue = bench.queue("dispatch")
    phase = Phase()
    arrivals = Arrivals(plan.samples)
    waiters = [
        Waiter(
            bench.target,
            phase,
            bench.requests,
            bench.requests.fetch(queue, count=1, worker=f"bench-{index}", wait_ms=WAIT_MS),
            arrivals,
        )
        for index in range(_WAITERS)
    ]
    warming = int(_WARMUP_S * plan.rate)
    senders = _Senders(bench, phase, [bench.requests.push(queue, number) for number in range(-warming, plan.samples)])
    await senders.open()
    start = perf_counter() + _WARMUP_S / 2
    schedule = [start + index / plan.rate for index in range(warming + plan.samples)]
    pacing = asyncio.ensure_future(_keep_schedule(senders, schedule))
    try:
        window = plan.samples / plan.rate + _LATE_S
        spent = await drive(phase, waiters, seconds=window, warmup=schedule[warming] - perf_counter(), meter=bench.meter)
    finally:
        pacing.cancel()
        senders.close()

    scheduled = schedule[warming:]
    sent = {index - warming: at for index, at in senders.sent.items() if index >= warming}
    raw = quantiles(arrivals.at[number] - sent[number] for number in arrivals.at)
    lag = quantiles(from_schedule(scheduled, sent))
    phase.errors.update(arrivals.errors())
    more = {"send lag p50 ms": lag.p50, "send lag p99 ms": lag.p99} if lag else {}
    if raw:
        more |= {"uncorrected p50 ms": raw.p50, "uncorrected p99 ms": raw.p99}
    yield outcome(
        "dispatch",
        f"{plan.rate:g}/s",
        phase,
        spent,
        rate=False,
        latency=quantiles(from_schedule(scheduled, arrivals.at)),
        more=more,
        doubted=["the server doesn't hold a long poll"] if phase.empty else [],
        send_lag_ms=lag.p99 if lag else None,
    )
