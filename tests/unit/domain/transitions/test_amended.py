"""A change of a job that is no transition."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ojs_engine.domain.job import Job, Timer
from ojs_engine.domain.transitions.effects import CancelTimer
from ojs_engine.domain.transitions.retention import TOMBSTONE_S, retention_s
from ojs_engine.domain.transitions.settle import amended
from unit.domain.transitions.samples import active, at, available, cancelled, completed, dead_letter, discarded, scheduled

EACH = [active, available, cancelled, completed, dead_letter, discarded, scheduled]


@pytest.mark.parametrize("make", EACH)
def test_it_changes_nothing_but_what_it_is_about_and_records_its_op(make: Callable[[], Job]) -> None:
    before = make()
    moment = at()
    found = amended(before, replace(before, tags=("new",)), moment)
    assert replace(found.job, tags=before.tags, timer=before.timer, amended=None) == before
    assert found.job.amended == moment.op
    assert found.effects == ()


def test_a_timer_that_is_right_stays_and_another_one_takes_the_place_of_one_that_isn_t() -> None:
    before = scheduled()
    assert before.timer is not None
    assert before.scheduled_at is not None
    moment = at()
    kept = amended(before, replace(before, priority=1), moment)
    assert (kept.job.timer, kept.effects) == (before.timer, ())
    later = before.scheduled_at + 5_000
    moved = amended(before, replace(before, scheduled_at=later), moment)
    assert moved.job.timer == Timer(moment.op, later, "scheduler")
    assert set(moved.effects) == {moved.job.timer, CancelTimer(before.timer.op)}


@pytest.mark.parametrize("make", [cancelled, completed, discarded, dead_letter])
def test_a_job_that_is_over_leaves_when_it_would_have_left(make: Callable[[], Job]) -> None:
    before = make()
    whole = retention_s(before)
    assert whole is not None
    ended_at = before.completed_at or before.cancelled_at or before.discarded_at
    assert ended_at is not None
    soon = amended(before, before, replace(at(), now=ended_at + 100_000))
    assert soon.ttl_s == whole - 100
    late = amended(before, before, replace(at(), now=ended_at + whole * 1_000))
    assert late.ttl_s == TOMBSTONE_S, "what is on its way to it still finds it"
