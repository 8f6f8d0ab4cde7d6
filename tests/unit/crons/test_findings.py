from __future__ import annotations

from msgspec.structs import replace

from ojs_features.crons.findings import LateCron, findings, is_late

MINUTE = 60_000
NOW = 1_800_000_000_000


def test_a_cron_entry_that_should_have_run_is_a_problem_with_its_cause() -> None:
    full = LateCron(name="night/ly", due_at=NOW - MINUTE, queue="q", full=True)
    found = list(findings([full, replace(full, full=False)], NOW))
    assert [one.message for one in found] == [
        "cron entry night/ly should have run 1m ago, and its queue q is full",
        "cron entry night/ly should have run 1m ago",
    ]
    assert [one.remedy.split(",")[0] for one in found] == ["make room: start workers", "see whether a scheduler runs"]
    assert {one.link for one in found} == {"/crons/night%2Fly"}
    assert [is_late(due_at, NOW) for due_at in (None, NOW, NOW - 30_000, NOW - 30_001)] == [False, False, False, True]
