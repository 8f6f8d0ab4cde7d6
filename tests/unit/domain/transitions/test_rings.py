from __future__ import annotations

import pytest

from ojs_engine.domain.job import Timer
from ojs_engine.domain.transitions import Liveness, Rearm, cancel, due, extend
from ojs_engine.domain.transitions.effects import CancelTimer
from ojs_engine.domain.transitions.rings import may_have_message
from support.tables import each
from unit.domain.transitions.samples import SECOND, T0, active, at, available, scheduled

ALIVE = Liveness(T0 + 30 * SECOND, covered=True)


@each(
    ("lease_ms", "every_s"),
    [(9_999, None), (10_000, 11), (10_500, 11), (10_501, 12), (30_000, 31), (59_500, 60), (60_000, 60), (3_600_000, 60)],
)
def test_the_first_ring_is_behind_the_deadline_or_one_of_many_on_the_way(lease_ms: int, every_s: int | None) -> None:
    timer = active(None, lease_ms).timer
    assert timer is not None
    assert timer.every_s == every_s
    if every_s is not None:  # nats-server counts from the full second next to the write
        assert every_s == 60 or 500 <= every_s * 1_000 - lease_ms <= 1_500


def test_only_running_jobs_ring() -> None:
    for job in (available(enqueue_ttl_ms=60 * SECOND), scheduled(scheduled_at=T0 + 60 * SECOND)):
        assert job.timer is not None
        assert job.timer.every_s is None


def test_every_write_of_a_running_job_rings_anew() -> None:
    job = active("w1", 60 * SECOND, heartbeat_timeout_ms=40 * SECOND)
    moment = at(21 * SECOND)
    transition = extend(job, "w1", None, moment)
    assert transition is not None
    assert transition.job.timer == Timer(moment.op, T0 + 51 * SECOND, "reaper", every_s=31)


def test_a_question_ahead_of_the_first_ring_sets_nothing() -> None:
    assert due(active("w1"), at(20 * SECOND)) is None


def test_between_two_rings_a_message_keeps_the_time() -> None:
    job = active("w1", 60 * SECOND)
    assert job.timer is not None
    assert due(job, at(31 * SECOND), ALIVE) == Rearm(Timer(job.timer.op, T0 + 60 * SECOND, "reaper"))


def test_a_far_deadline_is_left_to_the_rings_on_the_way() -> None:
    job = active(None, 180 * SECOND)
    assert job.timer is not None
    assert due(job, at(60 * SECOND)) is None
    assert due(job, at(119 * SECOND)) is None
    assert due(job, at(120 * SECOND)) == Rearm(Timer(job.timer.op, T0 + 180 * SECOND, "reaper"))


@pytest.mark.parametrize(
    ("lease_s", "ends_s", "purges"), [(30, 29, False), (30, 30, True), (180, 119, False), (180, 120, True)]
)
def test_a_message_that_may_have_been_set_goes_with_the_job(lease_s: int, ends_s: int, *, purges: bool) -> None:
    job = active(None, lease_s * SECOND)
    assert job.timer is not None
    assert cancel(job, at(ends_s * SECOND)).effects == ((CancelTimer(job.timer.op),) if purges else ())


@pytest.mark.parametrize(
    ("every_s", "ahead_ms", "stored"), [(None, 90_000, True), (60, 60_000, True), (60, 60_001, False), (31, 1, False)]
)
def test_a_message_beside_a_record_may_be_stored_as_long_as_a_ring_is_too_early(
    every_s: int | None, ahead_ms: int, stored: bool
) -> None:
    assert may_have_message(Timer("op", T0 + ahead_ms, "reaper", every_s), T0) is stored
