from __future__ import annotations

import asyncio

import pytest

from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.store.records.backoff import Tries, pause_s
from ojs_engine.store.records.write_timings import WriteTimings

USUAL = WriteTimings()


def test_the_usual_conflicts_cost_no_time_and_many_a_bounded_one() -> None:
    least = [pause_s(conflicts, 0.0, USUAL) for conflicts in range(1, 13)]
    most = [pause_s(conflicts, 0.999, USUAL) for conflicts in range(1, 13)]
    assert least[:2] == most[:2] == [0.0, 0.0]
    assert least[2:6] == [0.01, 0.02, 0.04, 0.08]
    assert most == sorted(most)
    assert max(most) <= 0.3
    assert 1.0 < sum(least) < sum(most) < 2.2
    assert pause_s(200, 0.5, USUAL) < 0.3


async def test_chance_is_the_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    clock = ServerClock(chance=lambda: 0.5)
    begun = 0
    async for _ in Tries(clock, USUAL, 60.0):
        begun += 1
        if begun == 5:
            break
    assert slept == [pause_s(3, 0.5, USUAL), pause_s(4, 0.5, USUAL)]
