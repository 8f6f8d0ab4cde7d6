"""The fault suite finds what is wrong in a running system: a suite that can't is worth nothing."""

from __future__ import annotations

import pytest

from reliability.run import run

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


async def test_what_is_planted_into_a_running_system_is_found_and_named(seed: int) -> None:
    [result] = await run("planted", seed, 6.0, rate=10.0, say=print)
    assert (result.lost, result.doubled) == (1, 2), result.wrong
    assert {wrong.partition(":")[0] for wrong in result.wrong} == {"lost", "doubled", "finished-once", "lists", "events"}
