"""The bars that `--check` holds a run against. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from bench.report import Summary


class Bar(NamedTuple):
    """`figure` (a name of `Summary.figures`) of the summary of `scenario`/`variant` must be at least or at most `bound`."""

    scenario: str
    variant: str
    figure: str
    bound: float
    at_least: bool

    def __str__(self) -> str:
        return f"{self.scenario} ({self.variant}) {self.figure} {'≥' if self.at_least else '≤'} {self.bound:,g}"


_BLOCKED: Final = ("one key, concurrency 0", "5,000 keys, concurrency 0", "5,000 keys, one running each")

BARS: Final = (
    Bar("enqueue", "32 connections", "jobs/s", 7_000, at_least=True),
    Bar("dispatch", "50/s", "p50 ms", 3, at_least=False),
    Bar("batch", "10,000 jobs", "p50 ms", 2_000, at_least=False),
    *(Bar("blocked", variant, "max ms", 100, at_least=False) for variant in _BLOCKED),
    Bar("projector", "5,000 transitions/s", "jobs/s", 4_750, at_least=True),
    Bar("projector", "5,000 transitions/s", "max ms", 2_000, at_least=False),
)


class Verdict(NamedTuple):
    """How a bar was met. `value` is None when it wasn't measured; `why` says what stands against it, if anything."""

    bar: Bar
    value: float | None
    met: bool
    why: str = ""

    def __str__(self) -> str:
        value = "" if self.value is None else f", is {self.value:,.2f}"
        return f"{'met' if self.met else '**missed**'}: {self.bar}{value}{f' ({self.why})' if self.why else ''}"


def judge(bars: Sequence[Bar], summaries: Sequence[Summary]) -> list[Verdict]:
    """A verdict for each bar. What wasn't measured, or had lost or refused jobs among it, isn't met."""
    measured = {(summary.scenario, summary.variant): summary for summary in summaries}
    return [_verdict(bar, measured.get((bar.scenario, bar.variant))) for bar in bars]


def _verdict(bar: Bar, summary: Summary | None) -> Verdict:
    value = summary.figures.get(bar.figure) if summary else None
    if summary is None or value is None:
        return Verdict(bar, None, met=False, why="not measured")
    if summary.errors:
        return Verdict(bar, value, met=False, why=f"{sum(summary.errors.values())} errors")
    met = value >= bar.bound if bar.at_least else value <= bar.bound
    return Verdict(bar, value, met, "; ".join(summary.doubts))
