"""Two reports side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final, NamedTuple

from bench.report import ALL, Summary, cpu_figure, number, summarise, table
from bench.result import Report

_FIGURES: Final = ("jobs/s", "p50 ms", "p99 ms", "cores")
_NOTICEABLE: Final = 0.05


class Ratio(NamedTuple):
    """One figure of both: their medians, and what B is of A (`lowest` to `highest` in repetitions).

    With as many repetitions of both, the ratio is the median of those of each pair, which a machine that gets slower meanwhile
    changes less than that of the medians.
    """

    scenario: str
    variant: str
    figure: str
    a: float
    b: float
    ratio: float
    lowest: float
    highest: float
    doubtful: bool

    @property
    def word(self) -> str:
        """What B is."""
        if abs(self.ratio - 1) <= _NOTICEABLE:
            return "same"
        return "better" if (self.ratio > 1) == (self.figure == "jobs/s") else "worse"


def ratios(before: Report, after: Report) -> list[Ratio]:
    """Of what both have measured. Raises ValueError when they have nothing in common."""
    old = {(summary.scenario, summary.variant): summary for summary in summarise(before.results)}
    found = [
        ratio
        for new in summarise(after.results)
        if (was := old.get((new.scenario, new.variant))) is not None
        for ratio in _ratios(was, new)
    ]
    if not found:
        raise ValueError("the two reports have no scenario and variant in common")
    return found


def _ratios(was: Summary, new: Summary) -> Iterator[Ratio]:
    doubtful = bool(was.doubts or new.doubts or was.errors or new.errors)
    for name in (*_FIGURES, *(cpu_figure(process) for process in new.cpu_us)):
        a, b = was.each.get(name, []), new.each.get(name, [])
        if a and b and all((*a, *b)):
            each = [y / x for x, y in zip(a, b, strict=True)] if len(a) == len(b) else [median(b) / median(a)]
            yield Ratio(
                new.scenario, new.variant, name, median(a), median(b), median(each), min(each), max(each), doubtful=doubtful
            )


def costs(found: list[Ratio]) -> list[Ratio]:
    """Those of the CPU time that all processes of the server spend on a job."""
    return [ratio for ratio in found if ratio.figure == cpu_figure(ALL)]


def compare(before: Report, after: Report) -> str:
    """A table of what both have measured: the two values, their ratio, and which is better by more than 5 %.

    Raises ValueError when they have nothing in common.
    """
    rows = [
        [
            r.scenario,
            r.variant,
            r.figure,
            number(r.a),
            number(r.b),
            f"{r.ratio:.2f}",
            _range(r),
            r.word,
            "!" if r.doubtful else "",
        ]
        for r in ratios(before, after)
    ]
    head = "".join(
        f"{letter}: {report.machine.versions['server']}, {report.date}, {report.machine.cores} cores ({report.machine.cpu}), "
        f"{report.machine.python}\n"
        for letter, report in (("A", before), ("B", after))
    )
    header = ["scenario", "variant", "figure", "A", "B", "B/A", "from, to", "B is", "!"]
    return f"{head}\n{table(header, rows, left=3)}"


def _range(ratio: Ratio) -> str:
    return "" if ratio.lowest == ratio.highest else f"{ratio.lowest:.2f}, {ratio.highest:.2f}"
