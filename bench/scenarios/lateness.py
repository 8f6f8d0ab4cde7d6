"""How late jobs are fetched that became due by themselves: what delays and cron entries have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from bench.load import Phase, drive
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import WAIT_MS, Arrivals, Waiter, settle
from bench.scenarios.outcome import outcome
from bench.stats import quantiles

_WAITERS: Final = 32
_COUNT: Final = 10
_LATE_S: Final = 10.0


async def lateness(
    bench: Bench,
    name: str,
    what: str,
    queue: str,
    filled: Phase,
    *,
    filled_as: str,
    first_s: float,
    spread_s: float,
    due_s: Callable[[int], float],
) -> Result:
    """Long-poll `queue` for what `filled` has set up, and compare each fetch with its due time.

    Job `number` is due at `due_s(number)` (Unix seconds), the first at `first_s`, the last `spread_s` later.
    """
    spare = first_s - time.time()
    late_fill = [] if spare > 0 else [f"the last was set up {-spare:.1f} s after the first was due"]
    await asyncio.sleep(max(spare - 1, 0))

    phase = Phase()
    phase.errors.update({f"set-up: {error}": times for error, times in filled.errors.items()})
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
    spent = await drive(phase, waiters, seconds=1 + spread_s + _LATE_S, meter=bench.meter)
    late = [at + wall_offset - due_s(number) for number, at in arrivals.at.items()]
    phase.errors.update(arrivals.errors())
    if early := sum(each < 0 for each in late):
        phase.errors["fetched before due"] = early
    await settle(bench, held)
    return outcome(
        name,
        what,
        phase,
        spent,
        rate=False,
        latency=quantiles(late),
        more={filled_as: filled.rate},
        doubted=late_fill + (["the server doesn't hold a long poll"] if phase.empty else []),
    )
