from __future__ import annotations

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Moment
from ojs_features.progress.rules import ProgressRecord, Report, of_attempt, reported, standing

JOB = Job(id="j", type="t", args=Raw(b"[]"), state=State.ACTIVE, attempt=2, started_at=1_000)
MOMENT = Moment(now=1_500, op="op")
HALF = ProgressRecord(job_id="j", attempt=2, at=1_200, op="before", fraction=0.5, message="half", data=Raw(b'{"a":1}'))


def test_the_first_report_of_an_attempt_stands_as_it_is() -> None:
    said = Report(fraction=0.1, message="m", data=Raw(b"{}"))
    found = reported(None, JOB, said, MOMENT)
    assert found == ProgressRecord(job_id="j", attempt=2, at=1_500, op="op", fraction=0.1, message="m", data=Raw(b"{}"))


def test_a_fraction_never_falls_within_an_attempt() -> None:
    assert reported(HALF, JOB, Report(fraction=0.4, message="back"), MOMENT) is None
    for fraction in (0.5, 0.6):
        found = reported(HALF, JOB, Report(fraction=fraction), MOMENT)
        assert found is not None
        assert (found.fraction, found.message, bytes(found.data)) == (fraction, None, b"")


def test_a_report_without_a_fraction_keeps_the_one_that_stands() -> None:
    found = reported(HALF, JOB, Report(data=Raw(b'{"a":2}')), MOMENT)
    assert found is not None
    assert (found.fraction, bytes(found.data), found.op) == (0.5, b'{"a":2}', "op")


def test_each_attempt_begins_without_progress() -> None:
    again = replace(JOB, attempt=3, started_at=2_000)
    assert of_attempt(HALF, again) is standing(HALF, again) is None
    found = reported(HALF, again, Report(fraction=0.1), MOMENT)
    assert found is not None
    assert (found.attempt, found.fraction) == (3, 0.1)
    anew = replace(JOB, started_at=2_000)  # the second attempt of a later life
    assert of_attempt(HALF, anew) is None


def test_what_was_told_last_stands_after_a_failure() -> None:
    for state in (State.RETRYABLE, State.DISCARDED, State.CANCELLED):
        assert standing(HALF, replace(JOB, state=state)) is HALF


def test_all_is_done_of_a_completed_job_that_has_told_of_its_progress() -> None:
    done = replace(JOB, state=State.COMPLETED, completed_at=9_000)
    found = standing(HALF, done)
    assert found is not None
    assert (found.fraction, found.at, found.message) == (1.0, 9_000, "half")
    assert standing(None, done) is None
