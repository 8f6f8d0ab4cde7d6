"""How punctual cron entries are when many of them are due in the same second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

from bench.load import Phase, drive
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import WAIT_MS, Arrivals, Waiter, fill, settle
from bench.scenarios.outcome import outcome
from bench.stats import quantiles

__all__ = ["run"]

_WAITERS: Final = 32
_COUNT: Final = 10
_REGISTRATIONS_PER_S: Final = 200
"""What the server is trusted to accept at least: the entries are due when all have been registered at this rate."""
_LATE_S: Final = 10.0


def _expression(due_s: int) -> str:
    """Once a year, at this second."""
    at = datetime.fromtimestamp(due_s, UTC)
    return f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *"


def _body(queue: str, number: int, due_s: int) -> dict[str, object]:
    return {
        "name": f"{queue}-{number}",
        "cron": _expression(due_s),
        "type": "bench.job",
        "args": [number],
        "options": {"queue": queue},
    }


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    number = bench.plan.crons
    queue = bench.queue("crons")
    due_s = int(time.time()) + 3 + number // _REGISTRATIONS_PER_S
    filled = await fill(bench, (bench.requests.post("/ojs/v1/cron", _body(queue, n, due_s)) for n in range(number)))
    spare = due_s - time.time()
    late_fill = [] if spare > 0 else [f"the last entry was registered {-spare:.1f} s after they were due"]
    await asyncio.sleep(max(spare - 1, 0))

    phase = Phase()
    phase.errors.update({f"set-up: {name}": times for name, times in filled.errors.items()})
    arrivals = Arrivals(filled.jobs)
    held: list[str] = []
    waiters = [
        Waiter(
            bench.target,
            phase,
            bench.requests,
            bench.requests.fetch(queue, count=_COUNT, worker=f"bench-{index}", wait_ms=WAIT_MS),
            arrivals,
            held,
        )
        for index in range(_WAITERS)
    ]
    wall_offset = time.time() - time.perf_counter()
    spent = await drive(phase, waiters, seconds=1 + _LATE_S, meter=bench.meter)
    lateness = [at + wall_offset - due_s for at in arrivals.at.values()]
    phase.errors.update(arrivals.errors())
    if early := sum(late < 0 for late in lateness):
        phase.errors["fetched before due"] = early
    yield outcome(
        "crons",
        f"{number:,} due in one second",
        phase,
        spent,
        rate=False,
        latency=quantiles(lateness),
        more={"registered per s": filled.rate},
        doubted=late_fill + (["the server doesn't hold a long poll"] if phase.empty else []),
    )
    await settle(bench, held)
    await fill(bench, (bench.requests.delete(f"/ojs/v1/cron/{queue}-{n}") for n in range(number)))
