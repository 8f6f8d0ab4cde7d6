from __future__ import annotations

import pytest
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import NOTHING, Job, State, Timer
from ojs_engine.domain.transitions import Failure, JobHolder, ack, claim, extend, nack
from ojs_engine.domain.transitions.effects import CancelTimer
from support.tables import each
from unit.domain.transitions.samples import ANYONE, SAMPLES, SECOND, T0, active, at, available, retryable


def test_claim_hands_the_job_to_the_worker() -> None:
    moment = at(SECOND)
    job = claim(available(), "w1", 60 * SECOND, moment).job
    assert (job.state, job.attempt, job.worker) == (State.ACTIVE, 1, "w1")
    assert (job.started_at, job.visible_until, job.lease_ms) == (T0 + SECOND, T0 + 61 * SECOND, 60 * SECOND)
    assert (job.beat_at, job.token) == (T0 + SECOND, None)
    assert job.timer == Timer(moment.op, T0 + 31 * SECOND, "reaper", every_s=31)


def test_claim_without_a_worker_is_not_checked_for_its_life() -> None:
    transition = claim(available(), None, 60 * SECOND, at())
    assert (transition.job.worker, transition.job.beat_at) == (None, None)
    assert transition.job.timer is not None
    assert transition.job.timer.at == T0 + 60 * SECOND


def test_claim_keeps_what_earlier_attempts_left() -> None:
    job = replace(available(), retry_delay_ms=700, errors=retryable().errors, attempt=1)
    claimed = claim(job, "w1", None, at()).job
    assert (claimed.attempt, claimed.retry_delay_ms, claimed.errors) == (2, 700, job.errors)


@pytest.mark.parametrize(
    ("asked", "own", "lease"),
    [(5_000, 3_000, 5_000), (None, 3_000, 3_000), (None, None, 1_800_000), (9_000, None, 9_000)],
)
def test_the_lease_is_the_fetchs_else_the_jobs_else_the_default(asked: int | None, own: int | None, lease: int) -> None:
    job = claim(available(visibility_timeout_ms=own), "w1", asked, at()).job
    assert (job.lease_ms, job.visible_until) == (lease, T0 + lease)


@pytest.mark.parametrize("state", [state for state in State if state is not State.AVAILABLE])
def test_only_an_available_job_is_claimed(state: State) -> None:
    with pytest.raises(OjsError) as refusal:
        claim(SAMPLES[state](), "w2", None, at())
    assert refusal.value.code == "conflict"


@pytest.mark.parametrize("members", [{"expires_at": T0 + SECOND}, {"enqueue_ttl_ms": SECOND}, {"total_timeout_ms": SECOND}])
def test_a_job_past_a_limit_is_never_handed_out(members: dict[str, int]) -> None:
    job = available(**members)
    assert claim(job, "w1", None, at(SECOND - 1)).job.state is State.ACTIVE
    with pytest.raises(OjsError) as refusal:
        claim(job, "w1", None, at(SECOND))
    assert refusal.value.code == "conflict"


@each(
    ("members", "lease_ms", "worker", "due_at"),
    [
        ({}, None, "w1", 30 * SECOND),
        ({}, None, None, 1_800 * SECOND),
        ({"timeout_ms": 2 * SECOND}, None, "w1", 2 * SECOND),
        ({"timeout_ms": 2 * SECOND, "grace_period_ms": SECOND}, None, "w1", 3 * SECOND),
        ({"visibility_timeout_ms": 3 * SECOND}, None, "w1", 3 * SECOND),
        ({"timeout_ms": 7_200 * SECOND}, 3_600 * SECOND, None, 3_600 * SECOND),
        ({}, 3_600 * SECOND, None, 1_800 * SECOND),
        ({"total_timeout_ms": 9 * SECOND}, None, "w1", 9 * SECOND),
        ({"heartbeat_timeout_ms": 8 * SECOND}, None, "w1", 8 * SECOND),
        ({"heartbeat_timeout_ms": 8 * SECOND}, 60 * SECOND, None, 60 * SECOND),
        ({"expires_at": T0 + SECOND, "enqueue_ttl_ms": SECOND}, None, "w1", 30 * SECOND),
    ],
)
def test_the_earliest_limit_of_a_run_is_armed(
    members: dict[str, int], lease_ms: int | None, worker: str | None, due_at: int
) -> None:
    timer = claim(available(**members), worker, lease_ms, at()).job.timer
    assert timer is not None
    assert (timer.at, timer.service) == (T0 + due_at, "reaper")


# Heartbeats


def test_a_heartbeat_early_in_the_lease_writes_nothing() -> None:
    job = active(lease_ms=60 * SECOND)
    assert extend(job, "w1", 60 * SECOND, at(30 * SECOND)) is None
    assert extend(job, "w1", 60 * SECOND, at(30 * SECOND + 1)) is not None


def test_a_written_extension_carries_a_timer_of_its_own_and_no_log_entry() -> None:
    job = active(lease_ms=60 * SECOND)
    moment = at(40 * SECOND)
    transition = extend(job, "w1", None, moment)
    assert transition is not None
    new = transition.job
    assert (new.visible_until, new.beat_at, new.lease_ms) == (T0 + 100 * SECOND, T0 + 40 * SECOND, 60 * SECOND)
    assert new.timer == Timer(moment.op, T0 + 70 * SECOND, "reaper", every_s=31)
    assert job.timer is not None
    assert transition.effects == (CancelTimer(job.timer.op),)
    assert new.transitions == job.transitions


def test_an_extension_arms_afresh_even_when_the_deadline_stays() -> None:
    job = active(lease_ms=10 * SECOND, timeout_ms=8 * SECOND)
    moment = at(6 * SECOND)
    transition = extend(job, "w1", None, moment)
    assert transition is not None
    assert job.timer is not None
    assert transition.effects == (Timer(moment.op, T0 + 8 * SECOND, "reaper"), CancelTimer(job.timer.op))


@pytest.mark.parametrize(
    ("asked", "own", "lease"),
    [(20_000, 3_000, 20_000), (None, 3_000, 3_000), (None, None, 12_000)],
)
def test_the_extension_is_the_heartbeats_else_the_jobs_else_the_claims(asked: int | None, own: int | None, lease: int) -> None:
    transition = extend(active(lease_ms=12_000, visibility_timeout_ms=own), "w1", asked, at(11_000))
    assert transition is not None
    assert transition.job.visible_until == T0 + 11_000 + lease


@pytest.mark.parametrize("lease_ms", [30 * SECOND, 90 * SECOND])
def test_another_lease_is_written_at_once(lease_ms: int) -> None:
    transition = extend(active(lease_ms=60 * SECOND), "w1", lease_ms, at(SECOND))
    assert transition is not None
    assert transition.job.visible_until == T0 + SECOND + lease_ms


def test_heartbeats_keep_a_job_with_a_heartbeat_timeout_from_stalling() -> None:
    job = active(heartbeat_timeout_ms=10 * SECOND)
    assert extend(job, "w1", None, at(5 * SECOND)) is None
    transition = extend(job, "w1", None, at(6 * SECOND))
    assert transition is not None
    assert transition.job.beat_at == T0 + 6 * SECOND


def test_a_heartbeat_starts_the_stall_clock_of_an_unnamed_fetch() -> None:
    transition = extend(active(None, heartbeat_timeout_ms=10 * SECOND), "w1", None, at(SECOND))
    assert transition is not None
    assert transition.job.timer is not None
    assert transition.job.timer.at == T0 + 11 * SECOND


def test_a_heartbeat_does_not_make_the_beating_worker_the_holder() -> None:
    transition = extend(active(None, 60 * SECOND), "w1", None, at(40 * SECOND))
    assert transition is not None
    assert transition.job.worker is None
    assert transition.job.timer is not None
    assert transition.job.timer.at == T0 + 100 * SECOND


@pytest.mark.parametrize("state", [state for state in State if state is not State.ACTIVE])
def test_only_an_active_job_is_extended(state: State) -> None:
    with pytest.raises(OjsError) as refusal:
        extend(SAMPLES[state](), "w1", None, at())
    assert refusal.value.code == "conflict"


def test_another_worker_extends_nothing() -> None:
    with pytest.raises(OjsError) as refusal:
        extend(active("w1", 60 * SECOND), "w2", None, at(50 * SECOND))
    assert refusal.value.code == "conflict"


# Fencing


def _answer(job: Job, holder: JobHolder, answer: str) -> State:
    moment = at(SECOND)
    transition = ack(job, NOTHING, holder, moment) if answer == "ack" else nack(job, Failure(message="no"), holder, moment)
    return transition.job.state


@each("answer", ["ack", "nack"])
@each("holder", [ANYONE, JobHolder("w1"), JobHolder(None, 1), JobHolder("w1", 1)])
def test_the_holder_or_an_unnamed_caller_finishes_the_job(answer: str, holder: JobHolder) -> None:
    assert _answer(active("w1"), holder, answer) is (State.COMPLETED if answer == "ack" else State.RETRYABLE)


@pytest.mark.parametrize("answer", ["ack", "nack"])
@pytest.mark.parametrize(
    ("worker", "holder"),
    [("w1", JobHolder("w2")), ("w1", JobHolder("w1", 2)), ("w1", JobHolder(None, 7))],
)
def test_a_caller_that_contradicts_the_record_is_refused(answer: str, worker: str | None, holder: JobHolder) -> None:
    with pytest.raises(OjsError) as refusal:
        _answer(active(worker), holder, answer)
    assert (refusal.value.code, refusal.value.details["current_state"]) == ("conflict", "active")


@pytest.mark.parametrize("answer", ["ack", "nack"])
def test_any_name_finishes_what_a_fetch_without_one_holds(answer: str) -> None:
    assert _answer(active(None), JobHolder("w2"), answer) is not State.ACTIVE


@pytest.mark.parametrize("answer", ["ack", "nack"])
def test_a_name_of_an_earlier_attempt_has_to_say_which_one_it_means(answer: str) -> None:
    given_back = nack(active("w1"), Failure(message="m", requeue=True), ANYONE, at()).job
    again = claim(given_back, None, None, at()).job
    with pytest.raises(OjsError, match="held it before"):
        _answer(again, JobHolder("w1"), answer)
    assert _answer(again, JobHolder("w1", again.attempt), answer) is not State.ACTIVE


@each("answer", ["ack", "nack"])
@each("state", [state for state in State if state is not State.ACTIVE])
def test_only_an_active_job_is_finished(answer: str, state: State) -> None:
    with pytest.raises(OjsError) as refusal:
        _answer(SAMPLES[state](), ANYONE, answer)
    assert (refusal.value.code, refusal.value.details["current_state"]) == ("conflict", state)
