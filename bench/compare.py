"""Two reports side by side. Pure."""

from __future__ import annotations

from typing import Final

from bench.report import Summary, summarise, table
from bench.result import Report

_FIGURES: Final = ("jobs/s", "p50 ms", "p99 ms")
_NOTICEABLE: Final = 0.05


def compare(before: Report, after: Report) -> str:
    """A table of what both have measured: the two values, their ratio, and which is better by more than 5 %.

    Raises ValueError when they have nothing in common.
    """
    old = {(summary.scenario, summary.variant): summary for summary in summarise(before.results)}
    rows = [
        [new.scenario, new.variant, name, f"{a:,.2f}", f"{b:,.2f}", f"{b / a:.2f}", _word(name, b / a), doubt]
        for new in summarise(after.results)
        if (was := old.get((new.scenario, new.variant))) is not None
        for doubt in ["!" if was.doubts or new.doubts or was.errors or new.errors else ""]
        for name, a, b in _pairs(was, new)
    ]
    if not rows:
        raise ValueError("the two reports have no scenario and variant in common")
    head = "".join(
        f"{letter}: {report.machine.versions['server']}, {report.date}, {report.machine.cores} cores ({report.machine.cpu}), "
        f"{report.machine.python}\n"
        for letter, report in (("A", before), ("B", after))
    )
    return f"{head}\n{table(['scenario', 'variant', 'figure', 'A', 'B', 'B/A', 'B is', '!'], rows, left=3)}"


def _pairs(was: Summary, new: Summary) -> list[tuple[str, float, float]]:
    pairs = [(name, was.figures.get(name), new.figures.get(name)) for name in _FIGURES]
    pairs += [(f"{name} CPU µs/job", was.cpu_us.get(name), value) for name, value in new.cpu_us.items()]
    return [(name, a, b) for name, a, b in pairs if a and b]


def _word(name: str, ratio: float) -> str:
    if abs(ratio - 1) <= _NOTICEABLE:
        return "same"
    return "better" if (ratio > 1) == (name == "jobs/s") else "worse"
