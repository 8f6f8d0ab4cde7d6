"""Measuring one system, and two in turn."""

from __future__ import annotations

import gc
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from bench.client import Target
from bench.messages import timestamp
from bench.plan import Bench, Plan
from bench.result import Report, Result
from bench.scenarios import SCENARIOS
from bench.system import NoSystem, RunFile, machine, pids_of, started_system


def say(line: str) -> None:
    """Tell whoever waits what happens."""
    print(line, file=sys.stderr, flush=True)


async def measure(run: RunFile, plan: Plan, names: Sequence[str], repeat: int = 1) -> Report:
    """Run scenarios against a system, `repeat` times. Raises NoSystem, ServerRefused, OSError, TimeoutError."""
    if run.url is None:
        raise NoSystem("the run file has no URL: is the gateway up?")
    try:
        target = Target.from_url(run.url)
    except ValueError as error:
        raise NoSystem(str(error)) from error
    about = await machine(target)
    bench = Bench.against(target, plan, pids_of(run) if run.pid else {}, run.nats_url, run.data)
    left_out = [name for name in names if SCENARIOS[name].needs_nats and bench.nats is None]
    if left_out:
        say(f"left out, because they need the system's run file: {', '.join(left_out)}")
    names = [name for name in names if name not in left_out]
    say(f"measuring {about.versions['server']} at {run.url} with {', '.join(names)}")
    if not await bench.reset():
        say(f"not in test mode, so nothing is wiped; jobs go to queues bench-{bench.run}-… and some may stay there")
    date = timestamp(int(time.time()) * 1000).replace(".000Z", "Z")
    results: list[Result] = []
    for _ in range(repeat):
        for name in names:
            say(f"{name}: {SCENARIOS[name].about}")
            async for result in SCENARIOS[name].run(bench):
                results.append(result)
                say(_progress(result))
                gc.collect()
    command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
    return Report(date=date, command=command, server=run.url, machine=about, results=results)


Enough = Callable[[Report, Report], bool]
"""Whether a scenario needs no further round, by the reports of both so far."""


async def in_turn(
    other: Path,
    plan: Plan,
    names: Sequence[str],
    rounds: int,
    log: Path | None,
    enough: Enough,
    *,
    start: Callable[[Path | None, Path], AbstractAsyncContextManager[RunFile]] = started_system,
    measure: Callable[[RunFile, Plan, Sequence[str]], Awaitable[Report]] = measure,
) -> tuple[Report, Report]:
    """Measure the server of another checkout and this one's, started anew in each round; who is first changes.

    Both are measured by this harness and run in this environment, over HTTP alone. A scenario is measured until it has been
    in so many `rounds`, or `enough` says so of its reports. Raises what `measure` does.
    """
    before: dict[str, list[Report]] = {name: [] for name in names}
    after: dict[str, list[Report]] = {name: [] for name in names}
    both = ((other, before), (Path(__file__).parent.parent, after))
    left = list(names)
    for turn in range(rounds):
        for checkout, found in both if turn % 2 == 0 else reversed(both):
            say(f"round {turn + 1} of {rounds}: {checkout}")
            async with start(log, checkout) as run:
                for name in left:
                    # Without NATS: what reaches behind the HTTP API knows only its own version's records.
                    found[name].append(await measure(replace(run, nats_url=None), plan, [name]))
        left = [name for name in left if not enough(_joined(before[name]), _joined(after[name]))]
        if not left:
            break
    return _joined(chain(*before.values())), _joined(chain(*after.values()))


InTurn = Callable[[Path, Plan, Sequence[str], int, Path | None, Enough], Awaitable[tuple[Report, Report]]]


def _joined(reports: Iterable[Report]) -> Report:
    first, *others = reports
    return replace(first, results=[result for report in (first, *others) for result in report.results])


def _progress(result: Result) -> str:
    parts = []
    if result.rate is not None:
        parts.append(f"{result.rate:,.0f} jobs/s")
    if result.latency is not None:
        parts.append(f"p50 {result.latency.p50:.2f} ms, p99 {result.latency.p99:.2f} ms")
    if result.errors:
        parts.append(f"{sum(result.errors.values()):,} errors")
    parts += [f"! {doubt}" for doubt in result.doubts]
    return f"  {result.scenario}, {result.variant}: {', '.join(parts)}"
