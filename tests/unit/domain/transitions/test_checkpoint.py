from __future__ import annotations

from collections.abc import Callable

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import JobHolder, cancel
from ojs_engine.domain.transitions.checkpoint import note_checkpoint
from unit.domain.transitions.samples import ANYONE, active, at, available, cancelled, completed, dead_letter, discarded


@pytest.mark.parametrize("holder", [ANYONE, JobHolder("w1"), JobHolder("w1", 1)])
def test_a_job_notes_that_it_has_a_checkpoint_and_goes_on_as_it_was(holder: JobHolder) -> None:
    before = active("w1")
    found = note_checkpoint(before, holder, at()).job
    assert found.checkpoint
    assert (found.state, found.transitions, found.worker) == (before.state, before.transitions, "w1")


def test_a_job_that_nobody_has_fetched_may_have_one_that_ends_with_it() -> None:
    noted = note_checkpoint(available(), ANYONE, at()).job
    assert (noted.checkpoint, cancel(noted, at()).job.checkpoint) == (True, False)


@pytest.mark.parametrize("make", [completed, cancelled, discarded, dead_letter])
def test_a_job_that_is_over_gets_none(make: Callable[[], Job]) -> None:
    with pytest.raises(OjsError, match="cannot save a checkpoint of job job-1"):
        note_checkpoint(make(), ANYONE, at())


@pytest.mark.parametrize("holder", [JobHolder("w2"), JobHolder("w1", 2)])
def test_who_only_says_to_hold_the_job_saves_none(holder: JobHolder) -> None:
    with pytest.raises(OjsError) as refused:
        note_checkpoint(active("w1"), holder, at())
    assert refused.value.code == "conflict"
