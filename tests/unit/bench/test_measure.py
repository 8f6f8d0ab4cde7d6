from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import bench
from bench.measure import in_turn
from bench.plan import Plan
from bench.result import Report
from bench.system import RunFile
from unit.bench.results import enqueue, report


async def test_who_is_first_changes_and_a_version_may_be_held_against_itself() -> None:
    here = Path(bench.__file__).parent.parent
    rates = iter((1.0, 2.0, 3.0, 4.0))

    @asynccontextmanager
    async def started(_log: object, checkout: Path) -> AsyncIterator[RunFile]:
        assert checkout == here
        yield RunFile(pid=1, url="http://a", nats_url="nats://a")

    async def measured(run: RunFile, *_: object) -> Report:
        assert run.nats_url is None
        return report(enqueue(next(rates)))

    before, after = await in_turn(here, Plan(), ["enqueue"], 2, None, lambda *_: False, start=started, measure=measured)
    assert [result.rate for result in before.results] == [1.0, 4.0]
    assert [result.rate for result in after.results] == [2.0, 3.0]


async def test_a_scenario_is_measured_until_there_is_enough_of_it() -> None:
    asked: list[Sequence[str]] = []

    @asynccontextmanager
    async def started(_log: object, _checkout: Path) -> AsyncIterator[RunFile]:
        yield RunFile(pid=1, url="http://a")

    async def measured(_run: object, _plan: object, names: Sequence[str]) -> Report:
        asked.append(names)
        return report(enqueue(1.0 if names == ["drain"] else 2.0))

    def enough(before: Report, after: Report) -> bool:
        assert len(before.results) == len(after.results)
        return before.results[0].rate == 1.0 or len(before.results) == 2

    before, after = await in_turn(Path(), Plan(), ["drain", "whole"], 3, None, enough, start=started, measure=measured)
    assert asked == [["drain"], ["whole"]] * 2 + [["whole"]] * 2
    assert [result.rate for result in (*before.results, *after.results)] == [1.0, 2.0, 2.0] * 2
