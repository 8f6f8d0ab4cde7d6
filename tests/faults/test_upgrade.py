"""This version and earlier ones side by side: each service is replaced alone, back, and again, and no promise breaks."""

from __future__ import annotations

import pytest

from reliability.run import run
from reliability.site import CannotBeDone
from support.examples import amount

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

VERSIONS = ["0.2.0", *(["01d7d06", "6cc4a75"] if amount() == "all" else [])]
"""`script/drills` has the others, too."""
REPLACEMENTS = 36
"""Two of each of six services, three times."""


@pytest.mark.parametrize("version", VERSIONS)
async def test_services_of_two_versions_do_every_job_once(version: str, seed: int) -> None:
    try:
        [result] = await run(f"upgrade-{version}", seed, 10.0, rate=15.0, say=print)
    except CannotBeDone as reason:
        pytest.skip(str(reason))
    assert result.wrong == []
    assert result.faults == REPLACEMENTS
    assert result.acknowledged > 100, "the load was too small to prove anything"
