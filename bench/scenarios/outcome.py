"""From a phase to its result."""

from __future__ import annotations

import os
from collections.abc import Iterable

from bench.load import Phase
from bench.processes import Spent
from bench.result import Result
from bench.stats import Quantiles, quantiles
from bench.trust import doubts


def connections_label(number: int) -> str:
    return f"{number} connection{'' if number == 1 else 's'}"


def outcome(
    scenario: str,
    variant: str,
    phase: Phase,
    spent: Spent | None,
    *,
    rate: bool,
    latency: Quantiles | None = None,
    more: dict[str, float] | None = None,
    doubted: Iterable[str] = (),
    send_lag_ms: float | None = None,
) -> Result:
    """The result of a phase. Without `latency` it is that of the phase's requests."""
    latency = latency or quantiles(phase.latencies)
    errors = dict(phase.errors)
    reasons = doubts(
        spent=spent,
        cores=os.cpu_count() or 1,
        seconds=phase.seconds,
        jobs=phase.jobs,
        samples=latency.count if latency else 0,
        errors=errors,
        send_lag_ms=send_lag_ms,
    )
    return Result(
        scenario=scenario,
        variant=variant,
        jobs=phase.jobs,
        seconds=phase.seconds,
        rate=phase.rate if rate else None,
        latency=latency,
        more=more or {},
        errors=errors,
        doubts=[*doubted, *reasons],
        spent=spent,
    )
