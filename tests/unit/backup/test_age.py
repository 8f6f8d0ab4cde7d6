"""What the age of the last backup is judged as."""

from __future__ import annotations

import pytest

from ojs_features.backup.age import findings

DAY = 86_400_000


@pytest.mark.parametrize("age_ms", [None, 0, 8 * DAY])
def test_a_backup_of_this_week_is_fresh_and_a_system_without_one_may_be_a_trial(age_ms: int | None) -> None:
    assert list(findings(age_ms)) == []


@pytest.mark.parametrize("age_ms", [8 * DAY + 1, 400 * DAY])
def test_an_older_backup_is_a_warning(age_ms: int) -> None:
    [found] = findings(age_ms)
    assert (found.check, found.severity) == ("backup", "warning")
    assert found.meaning
    assert found.remedy


def test_its_age_is_told_in_whole_days() -> None:
    [found] = findings(10 * DAY - 1)
    assert found.message == "the last backup is 9 days old"
