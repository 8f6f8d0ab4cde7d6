"""Findings about the audit."""

from __future__ import annotations

import pytest

from ojs_features.audit.fill import Fill
from ojs_features.audit.findings import findings

DAY_MS = 86_400_000


def filled(entries: int, *, days: int) -> Fill:
    return Fill(entries=entries, most=5_000_000, age_ms=days * DAY_MS, promised_ms=90 * DAY_MS)


@pytest.mark.parametrize(
    ("fill", "severity"),
    [
        (filled(3_000_000, days=20), None),
        (filled(4_000_001, days=20), "warning"),
        (filled(5_000_000, days=20), "problem"),
        (filled(5_000_000, days=90), None),
        (filled(0, days=0), None),
    ],
)
def test_the_check(fill: Fill, severity: str | None) -> None:
    found = list(findings(fill))
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    assert all(one.meaning and one.remedy for one in found)
