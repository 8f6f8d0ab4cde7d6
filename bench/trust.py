"""When not to believe a figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bench.processes import GENERATOR, Spent

GENERATOR_SHARE = 0.85
"""Of one core: beyond it the generator, not the server, may be what limits a rate."""

OTHERS_SHARE = 0.10
"""Of all cores: beyond it the rest of the machine took what the server could have used."""

ERRORS_SHARE = 0.01
"""Of the jobs: beyond it a rate says little about a working server."""

SEND_LAG_MS = 1.0
"""p99 of how late scheduled requests were sent: beyond it latencies are the generator's as much as the server's."""

SHORT_S = 0.5
"""A window below it says little, and CPU time is only known in steps of 10 ms."""

FEW_SAMPLES = 200
"""Below it a p99 is little more than the second worst sample."""


def doubts(
    *,
    spent: Spent | None,
    cores: int,
    seconds: float,
    jobs: int,
    samples: int,
    errors: Mapping[str, int],
    send_lag_ms: float | None = None,
) -> list[str]:
    """The reasons to distrust a measurement, each a short phrase; empty when there is none. `samples` are those of latency."""
    found: list[str] = []
    if spent is not None and spent.seconds > 0:
        generator = spent.processes[GENERATOR].cpu_s / spent.seconds
        others = spent.other_cpu_s / (spent.seconds * cores)
        if generator > GENERATOR_SHARE:
            found.append(f"generator saturated ({generator:.0%} of a core)")
        if others > OTHERS_SHARE:
            found.append(f"machine busy with other work ({others:.0%} of all cores)")
        found += [f"process {name} ended or couldn't be read" for name in spent.gone]
    wrong = sum(errors.values())
    if wrong > ERRORS_SHARE * max(jobs, 1):
        found.append(f"{wrong} errors for {jobs:,} jobs")
    if send_lag_ms is not None and send_lag_ms > SEND_LAG_MS:
        found.append(f"send lag p99 {send_lag_ms:.1f} ms")
    if seconds < SHORT_S:
        found.append(f"only {seconds:.2f} s long")
    if samples < FEW_SAMPLES:
        found.append(f"only {samples} samples")
    return found
