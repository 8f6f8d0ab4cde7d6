"""A drawing of each scenario: what each process spends on a job, and the rate or the latency. One report or two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.processes import GENERATOR
from bench.report import ALL, Summary, summarise
from bench.result import Report

_WIDTH: Final = 0.8
"""Of all bars of a variant together, where the next variant is 1 away."""
_SHADES: Final = (0.55, 1.0)
"""Of the former version and of this one."""


def draw(reports: Sequence[Report], folder: Path) -> None:
    """Write `<scenario>.svg` for each scenario of the last report; the same report makes the same bytes. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    versions = [_by_scenario(report) for report in reports]
    for scenario, summaries in versions[-1].items():
        variants = [summary.variant for summary in summaries]
        found = [{summary.variant: summary for summary in version.get(scenario, [])} for version in versions]
        with rc_context({"svg.hashsalt": "ojs-nats", "svg.fonttype": "none", "font.size": 9}):
            figure = Figure(figsize=(10, 1.2 + 0.5 * len(variants) * len(versions)), layout="constrained")
            left, right = figure.subplots(1, 2, sharey=True)
            figure.suptitle(f"{scenario}: {' and '.join(_name(report) for report in reports)}")
            _stack(left, variants, found)
            _figures(right, variants, found)
            figure.savefig(folder / f"{scenario}.svg", metadata={"Date": None})


def _name(report: Report) -> str:
    return f"{report.machine.versions['server']} ({report.date})"


def _by_scenario(report: Report) -> dict[str, list[Summary]]:
    found: dict[str, list[Summary]] = {}
    for summary in summarise(report.results):
        found.setdefault(summary.scenario, []).append(summary)
    return found


def _places(variants: Sequence[str], versions: int, version: int) -> list[float]:
    """Where the bars of a version are, from the top down."""
    height = _WIDTH / versions
    return [-place - (version - (versions - 1) / 2) * height for place in range(len(variants))]


def _stack(axes: Axes, variants: Sequence[str], found: Sequence[dict[str, Summary]]) -> None:
    processes = list(
        dict.fromkeys(
            name for version in found for summary in version.values() for name in summary.cpu_us if name not in {ALL, GENERATOR}
        )
    )
    for number, version in enumerate(found):
        places = _places(variants, len(found), number)
        before = [0.0] * len(variants)
        for place, process in enumerate(processes):
            spent = [version[name].cpu_us.get(process, 0.0) if name in version else 0.0 for name in variants]
            axes.barh(
                places,
                spent,
                left=before,
                height=_WIDTH / len(found),
                color=f"C{place}",
                alpha=_SHADES[number - len(found)],
                label=process if number == len(found) - 1 else None,
            )
            before = [a + b for a, b in zip(before, spent, strict=True)]
    axes.set_yticks([-place for place in range(len(variants))], labels=list(variants))
    axes.set_xlabel("CPU µs per job")
    if processes:
        axes.legend(loc="best")


def _figures(axes: Axes, variants: Sequence[str], found: Sequence[dict[str, Summary]]) -> None:
    """The rate where there is one; else from p50 to p99, with a mark at p90."""
    rated = any("jobs/s" in summary.figures for version in found for summary in version.values())
    for number, version in enumerate(found):
        for place, name in zip(_places(variants, len(found), number), variants, strict=True):
            figures = version[name].figures if name in version else {}
            alpha, height = _SHADES[number - len(found)], _WIDTH / len(found)
            if rated and "jobs/s" in figures:
                axes.barh(place, figures["jobs/s"], height=height, color="C7", alpha=alpha)
            elif not rated and "p50 ms" in figures:
                axes.barh(
                    place, figures["p99 ms"] - figures["p50 ms"], left=figures["p50 ms"], height=height, color="C7", alpha=alpha
                )
                axes.plot([figures["p90 ms"]], [place], marker="|", color="black")
    axes.set_xlabel("jobs a second" if rated else "ms, from p50 to p99 (p90 marked)")
    axes.set_xlim(left=0)
