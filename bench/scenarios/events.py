"""How soon a NATS subscriber hears of a transition that a client was told of."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Final

from bench.client import Target
from bench.load import Looper, Phase, drive
from bench.messages import Requests
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.outcome import outcome
from bench.scenarios.stored import opened_store
from bench.stats import quantiles
from ojs_core.base.ids import new_job_id
from ojs_core.jetstream.connection import Reply
from ojs_core.jetstream.subjects import ANY

RATE: Final = 200
_CONNECTIONS: Final = 8
_LATE_S: Final = 5.0


class _Pusher(Looper):
    """Pushes at a fixed rate, and notes when each push was answered."""

    def __init__(self, target: Target, phase: Phase, requests: Requests, queue: str, answered: dict[str, float]) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._queue = queue
        self._answered = answered
        self._job_id = ""

    def next_request(self) -> bytes:
        self._job_id = new_job_id(int(time.time() * 1000))
        body = {"id": self._job_id, "type": "bench.job", "args": [], "options": {"queue": self._queue}}
        return self._requests.post("/ojs/v1/jobs", body)

    def taken(self, body: bytes, now: float) -> None:  # noqa: ARG002 - the status says all
        self._answered[self._job_id] = now
        self.phase.count(now, now - self.sent)

    def pause_s(self) -> float:
        return max(0.0, self.sent + _CONNECTIONS / RATE - perf_counter())


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    queue = bench.queue("events")
    answered: dict[str, float] = {}
    heard: dict[str, float] = {}

    one_came = asyncio.Event()

    def hear(message: Reply) -> None:
        heard.setdefault(message.subject.rpartition(b".")[2].decode(), perf_counter())
        one_came.set()

    async def all_came() -> None:
        while answered.keys() - heard.keys():
            one_came.clear()
            await one_came.wait()

    async with opened_store(bench) as store:
        stop = await store.nats.listen(store.config.event("job.enqueued", queue, ANY), hear)
        phase = Phase()
        pushers = [_Pusher(bench.target, phase, bench.requests, queue, answered) for _ in range(_CONNECTIONS)]
        spent = await drive(phase, pushers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LATE_S):
                await all_came()
        await stop()
    if missing := len(answered.keys() - heard.keys()):
        phase.errors["event never came"] = missing
    window = [job_id for job_id, at in answered.items() if at >= phase.since and job_id in heard]
    yield outcome(
        "events",
        f"{RATE}/s",
        phase,
        spent,
        rate=True,
        latency=quantiles(heard[job_id] - answered[job_id] for job_id in window),
    )
