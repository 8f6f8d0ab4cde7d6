"""What is done again and again falls together with what others of the same machine do so."""

from __future__ import annotations

import pytest

from ojs_engine.base.waiting import until_next
from support.tables import each


@each(
    "now, moment",
    [
        (120.0, 125.0),
        (121.0, 125.0),
        (124.0, 125.0),
        pytest.param(124.5, 130.0, id="the next one is near"),
        pytest.param(124.999, 130.0, id="a timer that rang early"),
    ],
)
def test_whatever_the_moment_the_next_time_is_a_multiple_of_the_period(now: float, moment: float) -> None:
    assert now + until_next(5.0, now) == pytest.approx(moment)
