"""What a member of a workflow costs, and whether that depends on how many there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Final

import msgspec

from bench.client import Target, exchange
from bench.load import Looper, Phase, drive
from bench.messages import Requests, error_name, fetched_jobs
from bench.plan import Bench, ServerRefused
from bench.result import Result
from bench.scenarios.connections import WAIT_MS
from bench.scenarios.outcome import outcome
from bench.stats import quantiles

_WORKERS: Final = 8
_COUNT: Final = 10
_MEMBERS: Final = 1_000
"""Small workflows are run one after the other until they had this many members together."""
_MOST: Final = 30
_LIMIT_S: Final = 120.0
_LOOK_S: Final = 0.005
_LONGEST_CHAIN: Final = 1_000


class _Workflow(msgspec.Struct):
    id: str
    state: str


class _Answer(msgspec.Struct):
    workflow: _Workflow


class _Worker(Looper):
    """Fetches and acknowledges, each job with a small result."""

    def __init__(self, target: Target, phase: Phase, requests: Requests, fetch: bytes) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._fetch = fetch
        self._held: list[str] = []
        self._acking = False

    def next_request(self) -> bytes:
        self._acking = bool(self._held)
        return self._requests.ack(self._held.pop()) if self._held else self._fetch

    def taken(self, body: bytes, now: float) -> None:
        if self._acking:
            self.phase.count(now, now - self.sent)
        else:
            self._held.extend(job.id for job in fetched_jobs(body))


async def run(bench: Bench) -> AsyncIterator[Result]:
    for number in bench.plan.members:
        yield await _measure(bench, "group", number)
    for number in bench.plan.members:
        if number <= _LONGEST_CHAIN:
            yield await _measure(bench, "chain", number)


async def _measure(bench: Bench, kind: str, number: int) -> Result:
    await bench.reset()
    queue = bench.queue("workflows")
    phase = Phase()
    fetches = [bench.requests.fetch(queue, count=_COUNT, worker=f"bench-{n}", wait_ms=WAIT_MS) for n in range(_WORKERS)]
    workers = [_Worker(bench.target, phase, bench.requests, fetch) for fetch in fetches]
    per_member: list[float] = []

    async def workflows() -> None:
        for _ in range(max(1, min(_MOST, _MEMBERS // number))):
            began = perf_counter()
            await _one(bench, kind, number, queue)
            per_member.append((perf_counter() - began) / number)
        phase.finish()

    running = asyncio.create_task(workflows())
    try:
        spent = await drive(phase, workers, seconds=_LIMIT_S, meter=bench.meter)
    finally:
        running.cancel()
        outcomes = await asyncio.gather(running, return_exceptions=True)
    if isinstance(outcomes[0], ServerRefused):
        raise outcomes[0]
    if not phase.exhausted:
        phase.errors["workflows that did not end"] += 1
    latency = quantiles(per_member)
    return outcome("workflows", f"{kind} of {number:,}", phase, spent, rate=True, latency=latency)


async def _one(bench: Bench, kind: str, number: int, queue: str) -> None:
    """Create a workflow and wait for its end."""
    job = {"type": "bench.job", "args": [1], "options": {"queue": queue}}
    body = {"type": kind, "name": "bench", "steps" if kind == "chain" else "jobs": [job] * number}
    created = await _call(bench, bench.requests.post("/ojs/v1/workflows", body))
    look = bench.requests.get(f"/ojs/v1/workflows/{created.id}/progress")
    while (await _call(bench, look)).state == "running":  # noqa: ASYNC110 - over HTTP there is nothing to wait for
        await asyncio.sleep(_LOOK_S)


async def _call(bench: Bench, request: bytes) -> _Workflow:
    status, body = await exchange(bench.target, request, timeout_s=_LIMIT_S)
    if status >= 300:
        raise ServerRefused(f"a workflow was refused: {error_name(status, body)}")
    return msgspec.json.decode(body, type=_Answer).workflow
