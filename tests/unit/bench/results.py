"""Results and reports for the tests of this folder."""

from __future__ import annotations

from bench.processes import GENERATOR, Spent, Usage
from bench.result import Machine, Report, Result
from bench.stats import Quantiles

MACHINE = Machine(
    cores=2, cpu="a CPU", memory_gib=4, system="Linux 1", python="CPython 3", versions={"server": "ojs-nats 1"}, load=0.5
)


def spent(*, generator: float = 1.0, gateway: float = 2.0, other: float = 0.0, gone: tuple[str, ...] = ()) -> Spent:
    processes = {"gateway": Usage(gateway, 80.0, 60.0), GENERATOR: Usage(generator, 30.0, None)}
    return Spent(5.0, processes, other, list(gone))


def enqueue(
    rate: float,
    *,
    p50: float = 2.0,
    variant: str = "32 connections",
    errors: dict[str, int] | None = None,
    used: Spent | None = None,
) -> Result:
    return Result(
        scenario="enqueue",
        variant=variant,
        jobs=int(rate * 5),
        seconds=5.0,
        rate=rate,
        latency=Quantiles(int(rate * 5), p50, p50 * 2, p50 * 4, p50 * 8),
        errors=errors or {},
        spent=used,
    )


def report(*results: Result) -> Report:
    return Report(
        date="2026-01-01T00:00:00Z", command="python -m bench", server="http://a", machine=MACHINE, results=list(results)
    )
