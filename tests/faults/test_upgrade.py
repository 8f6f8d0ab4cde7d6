"""This version and earlier ones side by side: each service is replaced alone and put back, and no promise breaks."""

from __future__ import annotations

import pytest

from reliability.run import run
from reliability.site import CannotBeDone
from support.examples import amount

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

RATE = 12.0
SCENARIOS = {"upgrade-in-part": 18} if amount() != "all" else {f"upgrade-{one}": 36 for one in ("0.2.0", "before-0.3.0")}
"""With the number of replacements: two of each of six services, and then one of each back, or all back and again.

`script/drills` has all, too.
"""


@pytest.mark.parametrize(("scenario", "replacements"), SCENARIOS.items())
async def test_services_of_two_versions_do_every_job_once(scenario: str, replacements: int, seed: int) -> None:
    try:
        [result] = await run(scenario, seed, 10.0, rate=RATE, say=print)
    except CannotBeDone as reason:
        pytest.skip(str(reason))
    assert result.wrong == []
    assert result.faults == replacements
    assert result.acknowledged > 100, "the load was too small to prove anything"
