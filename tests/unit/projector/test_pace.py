"""How soon a projector reads again."""

from __future__ import annotations

import pytest

from ojs_projector.projector import ProjectorTimings, pace_s


@pytest.mark.parametrize(("records", "seconds"), [(0, 0.1), (20, 0.1), (100, 0.1), (150, 0.15), (250, 0.25), (500, 0.25)])
def test_the_more_a_read_has_brought_the_later_is_the_next(records: int, seconds: float) -> None:
    assert pace_s(records, ProjectorTimings()) == pytest.approx(seconds)
