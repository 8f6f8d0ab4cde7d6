"""Results for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from reliability.run import Result

_SHOWN: Final = 20
_COLUMNS: Final = (
    "Command",
    "Faults",
    "Jobs",
    "Lost",
    "Doubled",
    "Otherwise wrong",
    "Works again, s",
    "Gap, s",
    "Safety net",
)


def summary(result: Result) -> str:
    """What a run has shown, and the first of what is wrong."""
    verdict = f"{len(result.wrong)} promises broken" if result.wrong else "every promise kept"
    first = (
        f"{result.scenario} (seed {result.seed}, namespace {result.namespace}): {verdict}; {result.faults} faults, "
        f"{result.jobs} jobs, {result.workflows} workflows, {result.unanswered} pushes unanswered, works again within "
        f"{result.recovery_s:g} s, longest gap {result.gap_s:g} s, safety net {result.finds}"
    )
    lines = [first, *(f"    {wrong}" for wrong in result.wrong[:_SHOWN])]
    if len(result.wrong) > _SHOWN:
        lines.append(f"    … and {len(result.wrong) - _SHOWN} more")
    if result.wrong and result.kept:
        lines.append(f"    logs and data: {result.kept}")
    return "\n".join(lines)


def markdown(results: Sequence[Result]) -> str:
    """The table of docs/reliability.md, a row for each scenario."""
    lines = [
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
    ]
    lines += [_row(name, list(runs)) for name, runs in groupby(results, lambda result: result.scenario)]
    return "\n".join(lines)


def _row(name: str, runs: Sequence[Result]) -> str:
    other = sum(one.otherwise for one in runs)
    repeated = f" --runs {len(runs)}" if len(runs) > 1 else ""
    seeded = f" --seed {runs[0].seed}" if runs[0].seed != 1 else ""
    command = f"`script/faults {name} --seconds {runs[0].seconds:g}{seeded}{repeated}`"
    cells: list[object] = [command, _sum(one.faults for one in runs), _sum(one.jobs for one in runs)]
    cells += [_sum(one.lost for one in runs), _sum(one.doubled for one in runs), other]
    cells += [max(one.recovery_s for one in runs), max(one.gap_s for one in runs), _sum(one.finds for one in runs)]
    return f"| {' | '.join(map(str, cells))} |"


def _sum(numbers: Iterable[int]) -> str:
    return f"{sum(numbers):,}"
