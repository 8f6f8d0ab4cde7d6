"""Findings about keys."""

from __future__ import annotations

from ojs_features.access.findings import findings


def test_keys_that_are_gone_are_a_problem() -> None:
    [found] = findings(are_lost=True)
    assert (found.severity, bool(found.meaning), bool(found.remedy)) == ("problem", True, True)
    assert not findings(are_lost=False)
