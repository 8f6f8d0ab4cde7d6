from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import JobHolder, Moment
from ojs_features.checkpoints.rules import Saved, following, note_checkpoint
from unit.domain.transitions.samples import active, at

MOMENT = Moment(now=2_000_000_000_000, op="op")
ANYONE = JobHolder()
RUNNING = Job(
    id="j",
    type="t",
    args=Raw(b"[]"),
    state=State.ACTIVE,
    attempt=1,
    worker="w",
    started_at=MOMENT.now - 1,
    visible_until=MOMENT.now + 60_000,
    lease_ms=60_000,
)


def test_each_takes_the_place_of_the_last_and_is_one_further() -> None:
    first = following(None, "j", Saved(state=Raw(b"1"), step_index=4), MOMENT)
    assert (first.sequence, bytes(first.state), first.step_index, first.at) == (1, b"1", 4, MOMENT.now)
    second = following(first, "j", Saved(state=Raw(b"2")), MOMENT)
    assert (second.sequence, bytes(second.state), second.step_index) == (2, b"2", None)


@pytest.mark.parametrize("state", [State.AVAILABLE, State.SCHEDULED, State.RETRYABLE, State.PENDING, State.ACTIVE])
def test_a_job_that_goes_on_is_noted_without_an_entry_in_its_log(state: State) -> None:
    job = replace(RUNNING, state=state)
    noted = note_checkpoint(job, ANYONE, MOMENT)
    assert noted.job.checkpoint
    assert noted.job.transitions == job.transitions


@pytest.mark.parametrize("state", [State.COMPLETED, State.CANCELLED, State.DISCARDED])
def test_a_job_that_is_over_is_refused(state: State) -> None:
    with pytest.raises(OjsError, match="cannot save a checkpoint of job j") as refused:
        note_checkpoint(replace(RUNNING, state=state), ANYONE, MOMENT)
    assert refused.value.code == "conflict"


@pytest.mark.parametrize("holder", [ANYONE, JobHolder("w1"), JobHolder("w1", 1)])
def test_a_running_job_goes_on_as_it_was(holder: JobHolder) -> None:
    before = active("w1")
    found = note_checkpoint(before, holder, at())
    assert found.job.checkpoint
    assert (found.job.state, found.job.transitions, found.job.worker) == (before.state, before.transitions, "w1")
    assert found.effects == ()


@pytest.mark.parametrize("holder", [JobHolder("another"), JobHolder(None, 2), JobHolder("w", 2)])
def test_who_does_not_hold_it_is_refused(holder: JobHolder) -> None:
    with pytest.raises(OjsError) as refused:
        note_checkpoint(RUNNING, holder, MOMENT)
    assert refused.value.code == "conflict"
    assert note_checkpoint(RUNNING, JobHolder("w", 1), MOMENT).job.checkpoint


def test_a_checkpoint_outlives_a_failure_and_ends_with_the_job() -> None:
    job = replace(RUNNING, checkpoint=True)
    failed = transitions.nack(job, transitions.Failure(message="no"), ANYONE, MOMENT)
    assert failed.job.state is State.RETRYABLE
    assert failed.job.checkpoint
    for ended in (transitions.ack(job, Raw(b"1"), ANYONE, MOMENT), transitions.cancel(job, MOMENT, None)):
        assert not ended.job.checkpoint


def test_a_dead_letter_keeps_its_checkpoint_for_its_retry() -> None:
    job = replace(RUNNING, checkpoint=True)
    dead = transitions.nack(job, transitions.Failure(message="no", action="DEAD_LETTER"), ANYONE, MOMENT)
    assert dead.job.dead_letter
    assert dead.job.checkpoint
