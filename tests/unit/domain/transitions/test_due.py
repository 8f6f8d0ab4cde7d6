from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ojs_engine.access.principal import Reach
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, Retry, State, Timer
from ojs_engine.domain.transitions import (
    Liveness,
    LivenessNeededError,
    Rearm,
    Transition,
    due,
    expire,
    expired,
    extend,
    needs_liveness,
    reissue,
)
from ojs_engine.domain.worker import CompleteList, Mark
from support.tables import each
from unit.domain.transitions.samples import (
    SAMPLES,
    SECOND,
    T0,
    active,
    at,
    available,
    json,
    once,
    pending,
    retryable,
    scheduled,
)

LEASE = 60 * SECOND


def _happened(job: Job, after_ms: int, liveness: Liveness | None = None) -> Transition:
    decision = due(job, at(after_ms), liveness)
    assert isinstance(decision, Transition)
    return decision


# Waiting jobs


@pytest.mark.parametrize(("make", "wait"), [(scheduled, 10 * SECOND), (retryable, SECOND)])
def test_a_delay_that_is_over_makes_the_job_available(make: Any, wait: int) -> None:
    job = make()
    moment = at(wait)
    decision = due(job, moment)
    assert isinstance(decision, Transition)
    new = decision.job
    assert (new.state, new.enqueued_at, new.token, new.next_attempt_at) == (State.AVAILABLE, T0 + wait, moment.op, None)
    assert (new.error, new.errors, new.retry_delay_ms) == (job.error, job.errors, job.retry_delay_ms)


@pytest.mark.parametrize(("make", "wait"), [(scheduled, 10 * SECOND), (retryable, SECOND)])
def test_an_early_timer_is_set_again_for_the_records_own_time(make: Any, wait: int) -> None:
    job = make()
    assert due(job, at(wait - 1)) == Rearm(Timer(job.timer.op, T0 + wait, "scheduler"))


WAITING = {"scheduled": scheduled, "available": available, "pending": pending, "retryable": retryable}


@each("name", WAITING)
@each(
    ("members", "kind", "details"),
    [
        ({"expires_at": T0 + 500}, "expired", None),
        (
            {"total_timeout_ms": 500},
            "total_timeout",
            {"timeout_kind": "total", "limit_seconds": 0.5, "elapsed_seconds": 0.75},
        ),
    ],
)
def test_a_waiting_job_past_a_limit_is_discarded(name: str, members: Any, kind: str, details: Any) -> None:
    job = WAITING[name](retry=Retry(on_exhaustion="dead_letter"), **members)
    assert (expired(job, T0 + 499), expired(job, T0 + 500)) == (None, kind)
    transition = _happened(job, 750)
    new = transition.job
    assert (new.state, new.discarded_at, new.completed_at, new.dead_letter) == (State.DISCARDED, T0 + 750, None, False)
    assert new.error is not None
    assert (new.error.type, new.error.code, new.errors[-1]) == (kind, kind, new.error)
    assert (json(new.error.details) if new.error.details else None) == details
    assert (new.token, new.timer, transition.ttl_s) == (None, None, 30 * 86_400)
    assert new.transitions[-1].reason == kind


def test_the_enqueue_ttl_ends_a_job_that_was_never_started() -> None:
    transition = _happened(available(enqueue_ttl_ms=2 * SECOND), 3 * SECOND)
    error = transition.job.error
    assert error is not None
    assert error.type == "enqueue_ttl_expired"
    assert json(error.details) == {"timeout_kind": "enqueue_ttl", "limit_seconds": 2, "elapsed_seconds": 3}
    assert (transition.job.state, transition.job.completed_at) == (State.DISCARDED, None)


def test_the_enqueue_ttl_counts_from_becoming_available() -> None:
    job = _happened(scheduled(enqueue_ttl_ms=2 * SECOND), 10 * SECOND).job
    assert (expired(job, T0 + 11 * SECOND), expired(job, T0 + 12 * SECOND)) == (None, "enqueue_ttl_expired")


def test_the_enqueue_ttl_is_over_with_the_first_start() -> None:
    job = _happened(retryable(enqueue_ttl_ms=2 * SECOND), SECOND).job
    assert (job.state, expired(job, T0 + 100 * SECOND), job.timer) == (State.AVAILABLE, None, None)


def test_a_job_that_outlived_a_limit_is_not_promoted_first() -> None:
    assert _happened(scheduled(expires_at=T0 + 11 * SECOND), 12 * SECOND).job.state is State.DISCARDED


def test_expire_refuses_a_job_within_its_limits() -> None:
    with pytest.raises(OjsError) as refusal:
        expire(available(expires_at=T0 + SECOND), at(SECOND - 1))
    assert refusal.value.code == "conflict"


@pytest.mark.parametrize("state", [State.AVAILABLE, State.PENDING, State.COMPLETED, State.CANCELLED, State.DISCARDED])
def test_nothing_ever_happens_by_itself_to_a_job_without_a_deadline(state: State) -> None:
    assert due(SAMPLES[state](), at(10**12)) is None


# Running jobs


def test_a_lease_that_ran_out_makes_the_job_available_at_once() -> None:
    moment = at(3 * SECOND)
    decision = due(active(visibility_timeout_ms=3 * SECOND), moment)
    assert isinstance(decision, Transition)
    job = decision.job
    assert (job.state, job.attempt, job.uncharged, job.worker) == (State.AVAILABLE, 1, 0, None)
    assert (job.token, job.enqueued_at) == (moment.op, T0 + 3 * SECOND)
    assert job.error is not None
    assert (job.error.type, job.error.code, job.error.attempt) == ("visibility_timeout", "visibility_timeout", 1)
    assert (job.visible_until, job.lease_ms, job.beat_at) == (None, None, None)


@pytest.mark.parametrize(("on_exhaustion", "dead"), [("discard", False), ("dead_letter", True)])
def test_a_lease_that_ran_out_consumes_the_attempt(on_exhaustion: Any, dead: bool) -> None:
    job = _happened(active(lease_ms=SECOND, retry=once(on_exhaustion=on_exhaustion)), SECOND).job
    assert (job.state, job.dead_letter, job.completed_at) == (State.DISCARDED, dead, T0 + SECOND)


@pytest.mark.parametrize(
    ("members", "after", "kind", "details"),
    [
        ({"timeout_ms": 2_500}, 3_000, "timeout", ("execution", 2.5, 3)),
        ({"timeout_ms": 2_000, "grace_period_ms": 1_000}, 3_000, "timeout", ("execution", 3, 3)),
        ({"heartbeat_timeout_ms": 2_000}, 3_000, "stalled", ("stalled", 2, 3)),
    ],
)
def test_a_run_past_its_timeout_fails_with_back_off(members: Any, after: int, kind: str, details: Any) -> None:
    transition = _happened(active(**members), after)
    job = transition.job
    assert (job.state, job.retry_delay_ms, job.next_attempt_at) == (State.RETRYABLE, 1_000, T0 + after + 1_000)
    assert job.error is not None
    assert (job.error.type, job.error.code) == (kind, kind)
    assert tuple(json(job.error.details).values()) == details
    assert set(json(job.error.details)) == {"timeout_kind", "limit_seconds", "elapsed_seconds"}
    assert job.timer is not None
    assert job.timer.service == "scheduler"


def test_a_job_stalls_from_its_last_heartbeat() -> None:
    beaten = extend(active(heartbeat_timeout_ms=4 * SECOND), "w1", None, at(3 * SECOND))
    assert beaten is not None
    assert isinstance(due(beaten.job, at(6 * SECOND)), Rearm)
    error = _happened(beaten.job, 8 * SECOND).job.error
    assert error is not None
    assert json(error.details) == {"timeout_kind": "stalled", "limit_seconds": 4, "elapsed_seconds": 5}


@pytest.mark.parametrize("policy", [once(on_exhaustion="dead_letter"), Retry(non_retryable_errors=("timeout",))])
def test_a_timeout_ends_a_job_whose_policy_says_so(policy: Retry) -> None:
    job = _happened(active(timeout_ms=SECOND, retry=policy), SECOND).job
    assert (job.state, job.dead_letter) == (State.DISCARDED, policy.on_exhaustion == "dead_letter")


def test_the_total_timeout_ends_a_running_job_for_good() -> None:
    job = _happened(active(total_timeout_ms=SECOND, retry=Retry(on_exhaustion="dead_letter")), SECOND).job
    assert (job.state, job.dead_letter, job.completed_at) == (State.DISCARDED, False, T0 + SECOND)
    assert job.error is not None
    assert job.error.type == "total_timeout"


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"timeout_ms": 2_000, "visibility_timeout_ms": 3_000}, "timeout"),
        ({"timeout_ms": 3_000, "visibility_timeout_ms": 2_000}, "visibility_timeout"),
        ({"timeout_ms": 3_000, "heartbeat_timeout_ms": 2_000}, "stalled"),
        ({"total_timeout_ms": 1_000, "timeout_ms": 2_000}, "total_timeout"),
        ({"total_timeout_ms": 2_000, "timeout_ms": 2_000}, "total_timeout"),
    ],
)
def test_of_several_limits_the_earliest_decides(members: Any, kind: str) -> None:
    error = _happened(active(**members), 60 * SECOND).job.error
    assert error is not None
    assert error.type == kind


def test_a_running_job_does_not_expire() -> None:
    job = active(expires_at=T0 + SECOND, enqueue_ttl_ms=SECOND)
    assert expired(job, T0 + 2 * SECOND) is None
    assert due(job, at(2 * SECOND)) is None


# The life of the worker


def test_the_worker_is_asked_for_only_while_nothing_else_decides() -> None:
    job = active(lease_ms=LEASE)
    assert [needs_liveness(job, T0 + s * SECOND) for s in (29, 30, 59, 60)] == [None, "w1", "w1", None]
    assert needs_liveness(active(None, LEASE), T0 + 30 * SECOND) is None
    assert needs_liveness(retryable(), T0 + 30 * SECOND) is None


def test_due_says_which_worker_it_must_know() -> None:
    with pytest.raises(LivenessNeededError) as need:
        due(active(lease_ms=LEASE), at(30 * SECOND))
    assert need.value.worker == "w1"


@pytest.mark.parametrize(
    ("lease_s", "seen_s", "covered", "again_s"),
    [
        (60, None, True, 60),
        (60, 25, True, 55),
        (60, 25, False, 55),
        (40, 25, True, 40),
        (60, 2, False, 37),
        (34, 2, False, 34),
    ],
)
def test_a_worker_that_may_be_alive_is_looked_at_again(lease_s: int, seen_s: int | None, covered: bool, again_s: int) -> None:
    job = active(lease_ms=lease_s * SECOND)
    assert job.timer is not None
    seen_at = None if seen_s is None else T0 + seen_s * SECOND
    decision = due(job, at(32 * SECOND), Liveness(seen_at, covered))
    assert decision == Rearm(Timer(job.timer.op, T0 + again_s * SECOND, "reaper"))


def test_a_dead_worker_loses_its_job() -> None:
    decision = _happened(active(lease_ms=LEASE), 32 * SECOND, Liveness(T0 + 2 * SECOND, covered=True))
    job = decision.job
    assert (job.state, job.worker) == (State.AVAILABLE, None)
    assert job.error is not None
    assert (job.error.type, job.error.code) == ("worker_death", "worker_death")
    assert (job.transitions[-1].event, job.transitions[-1].worker) == ("worker_died", "w1")


# What its worker is known not to have

CLAIMED = 100
"""The revision of the claimed job's record; it was claimed at T0."""


def _complete(since: Mark, until: Mark, *jobs: str) -> Liveness:
    return Liveness(T0 + 30 * SECOND, covered=True, complete=CompleteList(since, until, frozenset(jobs)))


BEFORE, AFTER = Mark(CLAIMED - 1, T0 - 1), Mark(CLAIMED + 1, T0)


def test_a_job_that_a_complete_list_does_not_name_is_requeued_without_counting() -> None:
    moment = at(32 * SECOND)
    decision = due(active(lease_ms=LEASE, retry=once()), moment, _complete(BEFORE, AFTER, "job-2"), CLAIMED)
    assert isinstance(decision, Transition)
    job = decision.job
    assert (job.state, job.attempt, job.uncharged, job.worker, job.errors) == (State.AVAILABLE, 1, 1, None, ())
    assert (job.token, job.started_at, job.visible_until) == (moment.op, None, None)
    assert (job.transitions[-1].event, job.transitions[-1].reason) == ("requeued", "not_held")


@pytest.mark.parametrize(
    ("liveness", "revision"),
    [
        (_complete(BEFORE, AFTER, "job-1"), CLAIMED),
        (_complete(BEFORE, Mark(CLAIMED, T0), "job-2"), CLAIMED),
        (_complete(BEFORE, Mark(CLAIMED + 1, T0 - 1), "job-2"), CLAIMED),
        (_complete(BEFORE, BEFORE), CLAIMED),
        (_complete(BEFORE, AFTER), None),
        (Liveness(T0 + 30 * SECOND, covered=True), CLAIMED),
        (Liveness(T0 + 30 * SECOND, covered=True, left=CLAIMED), CLAIMED),
    ],
    ids=["named", "written since", "claimed since", "both", "revision unknown", "nothing said", "claimed after it left"],
)
def test_a_job_that_its_worker_may_have_stays_there(liveness: Liveness, revision: int | None) -> None:
    assert isinstance(due(active(lease_ms=LEASE), at(32 * SECOND), liveness, revision), Rearm)


@each(
    "said",
    [
        _complete(BEFORE, AFTER, "job-2"),
        _complete(AFTER, AFTER),
        Liveness(T0, covered=True, left=CLAIMED + 1),
        Liveness(T0, covered=True),
    ],
    ids=["not held", "an earlier process", "has left", "dead"],
)
@each("reach", [Reach(queues=("shop.*",)), Reach(types=("shop.*",))], ids=["queues", "types"])
def test_what_is_said_of_a_worker_counts_for_jobs_of_who_says_it_alone(said: Liveness, reach: Reach) -> None:
    """A narrowed key may name any worker: its lease goes on."""
    job = active(lease_ms=LEASE, queue="mail", type="mail.send")
    assert isinstance(due(job, at(32 * SECOND), replace(said, reach=reach), CLAIMED), Rearm)
    own = active(lease_ms=LEASE, queue="shop.a", type="shop.pay")
    assert isinstance(due(own, at(32 * SECOND), replace(said, reach=reach), CLAIMED), Transition)


def test_what_an_earlier_process_had_is_lost_with_it_and_counts() -> None:
    decision = due(active(lease_ms=LEASE), at(32 * SECOND), _complete(AFTER, AFTER), CLAIMED)
    assert isinstance(decision, Transition)
    job = decision.job
    assert (job.state, job.attempt, job.uncharged) == (State.AVAILABLE, 1, 0)
    assert [error.type for error in job.errors] == ["worker_death"]
    assert job.transitions[-1].event == "worker_died"


def test_what_a_worker_had_when_it_left_is_requeued_without_counting() -> None:
    liveness = Liveness(T0, covered=True, left=CLAIMED + 1)
    decision = due(active(lease_ms=LEASE, retry=once()), at(32 * SECOND), liveness, CLAIMED)
    assert isinstance(decision, Transition)
    assert (decision.job.state, decision.job.uncharged) == (State.AVAILABLE, 1)
    assert (decision.job.transitions[-1].event, decision.job.transitions[-1].reason) == ("requeued", "deregistered")


def test_a_dead_worker_consumes_the_attempt() -> None:
    job = active(lease_ms=LEASE, retry=once(on_exhaustion="dead_letter"))
    new = _happened(job, 32 * SECOND, Liveness(T0, covered=True)).job
    assert (new.state, new.dead_letter) == (State.DISCARDED, True)


def test_a_passed_deadline_needs_no_worker() -> None:
    assert _happened(active(lease_ms=31 * SECOND), 32 * SECOND).job.state is State.AVAILABLE


def test_the_record_decides_whatever_timer_asked() -> None:
    job = replace(active(lease_ms=SECOND), timer=Timer("other", T0, "scheduler"))
    assert due(job, at(SECOND - 1)) == Rearm(Timer("other", T0 + SECOND, "reaper"))


# New tokens


def test_a_reissued_job_stays_where_it_is_with_another_token() -> None:
    job = available(expires_at=T0 + 9 * SECOND)
    moment = at(SECOND)
    transition = reissue(job, moment)
    new = transition.job
    assert (new.state, new.enqueued_at, new.attempt) == (State.AVAILABLE, T0, 0)
    assert (new.token, new.timer) == (moment.op, job.timer)
    assert new.transitions[-1].event == "reissued"


@pytest.mark.parametrize("state", [state for state in State if state is not State.AVAILABLE])
def test_only_an_available_job_has_a_token_to_reissue(state: State) -> None:
    with pytest.raises(OjsError) as refusal:
        reissue(SAMPLES[state](), at())
    assert refusal.value.code == "conflict"
