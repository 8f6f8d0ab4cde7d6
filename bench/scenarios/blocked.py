"""What jobs that no limit holds up pay for many that have to wait for a permit of their key, ahead of them in their queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Any, Final, NamedTuple

from bench.client import Asker
from bench.load import Phase
from bench.messages import error_name, fetched_jobs
from bench.plan import Bench, ServerRefused
from bench.result import Result
from bench.scenarios.outcome import outcome

_BATCH: Final = 1_000
_KEYS: Final = 5_000
_ANSWER_S: Final = 60.0
_NOTHING_PAUSE_S: Final = 0.001


class _Kind(NamedTuple):
    """Blocked jobs of so many keys; `running` of each are active, which is all that it allows."""

    keys: int
    running: int


_KINDS: Final = {
    "none": _Kind(0, 0),
    "one key, concurrency 0": _Kind(1, 0),
    f"{_KEYS:,} keys, concurrency 0": _Kind(_KEYS, 0),
    f"{_KEYS:,} keys, one running each": _Kind(_KEYS, 1),
}
VARIANTS: Final = tuple(_KINDS)


async def run(bench: Bench) -> AsyncIterator[Result]:
    for name, kind in _KINDS.items():
        await bench.reset()
        server = Asker(bench.target)
        await server.open()
        try:
            yield await _measure(bench, server, name, kind)
        finally:
            server.close()
    await bench.reset()


async def _measure(bench: Bench, server: Asker, name: str, kind: _Kind) -> Result:
    """Push what is blocked, then push and fetch unrelated jobs one by one while it is put aside."""
    queue = bench.queue("blocked")
    if kind.running:
        await _push_limited(bench, server, queue, kind, kind.keys)
        await _start(bench, server, queue, kind.keys)
    if kind.keys:
        await _push_limited(bench, server, queue, kind, bench.plan.blocked)
    phase = Phase()
    phase.open_window(float("inf"))
    before = bench.meter.read()
    for number in range(1, bench.plan.samples + 1):
        await _sample(bench, server, queue, number, phase)
    phase.finish()
    return outcome("blocked", name, phase, bench.meter.spent(before), rate=False)


async def _sample(bench: Bench, server: Asker, queue: str, number: int, phase: Phase) -> None:
    """From the answer to a push until a fetch that doesn't wait has brought the job."""
    await _ask(server, bench.requests.push(queue, number))
    fetch = bench.requests.fetch(queue, count=1, worker="bench")
    began = perf_counter()
    while True:
        jobs = fetched_jobs(await _ask(server, fetch))
        now = perf_counter()
        if jobs and jobs[0].args == (number,):
            break
        if jobs:
            phase.errors["another job was fetched"] += 1
        if now - began > _ANSWER_S:
            phase.errors["never fetched"] += 1
            return
        phase.empty += 1
        await asyncio.sleep(_NOTHING_PAUSE_S)
    phase.count(now, now - began)
    await _ask(server, bench.requests.ack(jobs[0].id))


async def _push_limited(bench: Bench, server: Asker, queue: str, kind: _Kind, number: int) -> None:
    for start in range(0, number, _BATCH):
        jobs: list[dict[str, Any]] = [
            {
                "type": "bench.job",
                "args": [0],
                "options": {"queue": queue, "rate_limit": {"key": f"{queue}.{one % kind.keys}", "concurrency": kind.running}},
            }
            for one in range(start, min(start + _BATCH, number))
        ]
        await _ask(server, bench.requests.post("/ojs/v1/jobs/batch", {"jobs": jobs}))


async def _start(bench: Bench, server: Asker, queue: str, number: int) -> None:
    """Have jobs claimed; none of them ends."""
    fetch = bench.requests.fetch(queue, count=100, worker="bench")
    until = perf_counter() + _ANSWER_S
    while number > 0:
        number -= len(fetched_jobs(await _ask(server, fetch)))
        if perf_counter() > until:
            raise ServerRefused(f"{number} jobs that were to run before the others were blocked were not fetched")


async def _ask(server: Asker, request: bytes) -> bytes:
    """The body of a good answer. Raises ServerRefused for any other, OSError, TimeoutError."""
    async with asyncio.timeout(_ANSWER_S):
        status, body = await server.ask(request)
    if not 200 <= status < 300:
        raise ServerRefused(error_name(status, body))
    return body
