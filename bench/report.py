"""From results to tables that can be pasted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from bench.processes import GENERATOR, Usage
from bench.result import Report, Result

ALL = "all"
"""Beside the processes: all of them together, but the generator."""


class Summary(NamedTuple):
    """All repetitions of one scenario and variant.

    `figures` are medians by name (`jobs/s`, `p50 ms` … and the scenario's own), `lowest` and `highest` the range that they
    come from; `cpu_us` is CPU time per job, `cores` per second and `memory` (RSS, PSS) in MiB, by process. Errors are added up.
    `each` has the values of all repetitions, in their order, of figures and CPU times per job.
    """

    scenario: str
    variant: str
    times: int
    figures: dict[str, float]
    lowest: dict[str, float]
    highest: dict[str, float]
    cpu_us: dict[str, float]
    cores: dict[str, float]
    memory: dict[str, tuple[float, float | None]]
    errors: dict[str, int]
    doubts: list[str]
    each: dict[str, list[float]]


def _figures(result: Result) -> dict[str, float]:
    figures: dict[str, float] = {}
    if result.rate is not None:
        figures["jobs/s"] = result.rate
    if result.latency is not None:
        latency = result.latency
        figures |= {"p50 ms": latency.p50, "p90 ms": latency.p90, "p99 ms": latency.p99, "max ms": latency.max}
    return figures | result.more


def summarise(results: Iterable[Result]) -> list[Summary]:
    """One summary for each scenario and variant, in the order in which they first occur."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.scenario, result.variant), []).append(result)
    return [_summary(scenario, variant, group) for (scenario, variant), group in groups.items()]


def _summary(scenario: str, variant: str, group: Sequence[Result]) -> Summary:
    figures = _by_name(_figures(result) for result in group)
    errors: Counter[str] = Counter()
    for result in group:
        errors.update(result.errors)
    spent = [(result, result.spent) for result in group if result.spent is not None]
    cpu = _by_name({n: cpu_s / r.jobs * 1e6 for n, cpu_s in _cpu_s(s.processes).items()} for r, s in spent if r.jobs)
    cores = _by_name({n: cpu_s / s.seconds for n, cpu_s in _cpu_s(s.processes).items()} for _, s in spent if s.seconds)
    rss = _by_name({n: u.rss_mib for n, u in s.processes.items()} for _, s in spent)
    pss = _by_name({n: u.pss_mib for n, u in s.processes.items() if u.pss_mib is not None} for _, s in spent)
    return Summary(
        scenario,
        variant,
        len(group),
        {name: median(values) for name, values in figures.items()},
        {name: min(values) for name, values in figures.items()},
        {name: max(values) for name, values in figures.items()},
        {name: median(values) for name, values in cpu.items()},
        {name: median(values) for name, values in cores.items()},
        {name: (max(values), max(pss[name]) if name in pss else None) for name, values in rss.items()},
        dict(errors),
        list(dict.fromkeys(doubt for result in group for doubt in result.doubts)),
        figures | {cpu_figure(name): values for name, values in cpu.items()},
    )


def cpu_figure(process: str) -> str:
    """The name of what a process spends on a job."""
    return f"{process} CPU µs/job"


def _cpu_s(processes: Mapping[str, Usage]) -> dict[str, float]:
    each = {name: used.cpu_s for name, used in processes.items()}
    served = [spent for name, spent in each.items() if name != GENERATOR]
    return {ALL: sum(served), **each} if served else each


def _by_name(each: Iterable[dict[str, float]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for figures in each:
        for name, value in figures.items():
            found.setdefault(name, []).append(value)
    return found


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A Markdown table with aligned columns, the first `left` of them flush left."""
    widths = [max(2, *(len(cell) for cell in column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        return f"| {' | '.join(padded)} |"

    rule = ("-" * width if index < left else "-" * (width - 1) + ":" for index, width in enumerate(widths))
    return "\n".join([line(header), f"| {' | '.join(rule)} |", *(line(row) for row in rows)])


_MAIN = ("jobs/s", "p50 ms", "p90 ms", "p99 ms", "max ms")


def number(value: float | None) -> str:
    """With as many digits as say something; a dash for None."""
    if value is None:
        return "-"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _cell(summary: Summary, name: str) -> str:
    value = number(summary.figures.get(name))
    if summary.times == 1 or name not in summary.figures:
        return value
    return f"{value} ({number(summary.lowest[name])} to {number(summary.highest[name])})"


def _cpu(summary: Summary, name: str) -> str:
    return f"{number(summary.cpu_us.get(name))} ({summary.cores[name]:.2f})" if name in summary.cores else "-"


def _memory(summary: Summary, name: str) -> str:
    rss, pss = summary.memory.get(name, (None, None))
    return "-" if rss is None else f"{rss:.0f} / {number(pss)}"


def render(report: Report) -> str:
    """The whole report: what was measured on, the figures, the processes, errors and doubts."""
    summaries = summarise(report.results)
    machine = report.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items() if name != "server")
    times = max((summary.times for summary in summaries), default=1)
    figures = [
        [s.scenario, s.variant, *(_cell(s, name) for name in _MAIN), f"{sum(s.errors.values()):,}", "!" if s.doubts else ""]
        for s in summaries
    ]
    names = list(dict.fromkeys(name for summary in summaries for name in summary.memory))
    spending = list(dict.fromkeys(name for summary in summaries for name in summary.cores))
    cpu = [[s.scenario, s.variant, *(_cpu(s, name) for name in spending)] for s in summaries]
    memory = [[s.scenario, s.variant, *(_memory(s, name) for name in names)] for s in summaries]
    parts = [
        f"### {machine.versions['server']}, {report.date}",
        f"{machine.cores} cores ({machine.cpu}), {machine.memory_gib:g} GiB, {machine.system}, {machine.python}; {versions}; "
        f"load {machine.load} at the start. `{report.command}`"
        + (f". Medians of {times} runs (lowest to highest)." if times > 1 else "."),
        table(["scenario", "variant", *_MAIN, "errors", "!"], figures, left=2),
    ]
    if names:
        parts.append(table(["CPU µs per job (cores)", "variant", *spending], cpu, left=2))
        parts.append(table(["MiB RSS / PSS at the end", "variant", *names], memory, left=2))
    notes = [note for summary in summaries for note in _notes(summary)]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def _notes(summary: Summary) -> Iterable[str]:
    subject = f"{summary.scenario} ({summary.variant})"
    more = [f"{name} {number(value)}" for name, value in summary.figures.items() if name not in _MAIN and value]
    if more:
        yield f"- {subject}: {', '.join(more)}"
    if summary.errors:
        yield f"- {subject}: **errors** {', '.join(f'{times:,} of {name!r}' for name, times in summary.errors.items())}"
    if summary.doubts:
        yield f"- {subject}: **don't trust** ({'; '.join(summary.doubts)})"
