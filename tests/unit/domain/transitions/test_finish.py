from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import NOTHING, Blob, Job, Membership, Retention, Retry, State, Timer
from ojs_engine.domain.transitions import Failure, JobHolder, ack, acked_before, claim, nack
from ojs_engine.domain.transitions.effects import Apart
from ojs_engine.domain.transitions.finish import INLINE_BYTES
from support.tables import each
from unit.domain.transitions.samples import ANYONE, SECOND, T0, active, at, json, once

HOUR_S = 3_600
DAY_S = 24 * HOUR_S
MEMBER = Membership(id="flow", node=1, kind="chain", step="0", index=0, size=2)


def _nack(job: Job, **members: Any) -> Job:
    return nack(job, Failure(**({"message": "no"} | members)), ANYONE, at(SECOND)).job


# ACK


def test_ack_completes_the_job_and_clears_its_error() -> None:
    failed = _nack(active())
    job = claim(replace(failed, state=State.AVAILABLE), "w1", None, at()).job
    assert job.error is not None
    transition = ack(job, Raw(b'{"n":1}'), ANYONE, at(SECOND))
    done = transition.job
    assert (done.state, done.completed_at, done.result_stored_at) == (State.COMPLETED, T0 + SECOND, T0 + SECOND)
    assert (done.error, done.errors, json(done.result)) == (None, job.errors, {"n": 1})
    assert (done.discarded_at, done.cancelled_at, done.visible_until, done.lease_ms) == (None, None, None, None)
    assert transition.ttl_s == 7 * DAY_S
    assert done.timer is None


@pytest.mark.parametrize(
    ("holder", "same"),
    [
        (JobHolder("w1", 1), True),
        (JobHolder("w1", 2), False),
        (JobHolder("w2", 1), False),
        (JobHolder("w1"), True),
        (JobHolder("w2"), False),
        (JobHolder(None, 1), False),
        (ANYONE, False),
    ],
)
def test_an_ack_is_a_repetition_if_it_names_who_completed_the_job(holder: JobHolder, same: bool) -> None:
    running = active("w1")
    assert not acked_before(running, holder)
    assert acked_before(ack(running, Raw(b"1"), ANYONE, at()).job, holder) is same


def rerun(before: str | None, worker: str | None, **members: Any) -> Job:
    """A job whose first attempt, by `before`, has failed, and whose second `worker` has completed."""
    failed = nack(active(before, **members), Failure(message="no"), ANYONE, at(SECOND)).job
    again = claim(replace(failed, state=State.AVAILABLE), worker, None, at(2 * SECOND)).job
    return ack(again, Raw(b"1"), ANYONE, at(3 * SECOND)).job


@pytest.mark.parametrize(
    ("job", "same"),
    [
        (rerun("w2", "w1"), True),
        (rerun("w1", "w1"), False),
        (rerun(None, "w1"), False),
        (rerun("w1", "w2"), False),
        (rerun("w1", None), False),
    ],
)
def test_an_ack_without_an_attempt_is_of_the_only_one_that_its_worker_has_held(job: Job, same: bool) -> None:
    assert acked_before(job, JobHolder("w1")) is same
    assert acked_before(job, JobHolder("w1", 2)) is (job.worker == "w1")


def test_a_log_that_was_cut_says_nothing_of_earlier_attempts() -> None:
    done = ack(active("w1"), Raw(b"1"), ANYONE, at()).job
    assert acked_before(done, JobHolder("w1"))
    assert not acked_before(replace(done, transitions=done.transitions[1:]), JobHolder("w1"))
    assert not acked_before(replace(done, transitions=()), JobHolder("w1"))


def test_null_is_a_result_and_an_absent_one_is_not() -> None:
    null = ack(active(), Raw(b"null"), ANYONE, at()).job
    assert (json(null.result), null.result_stored_at) == (None, T0)
    none = ack(active(), NOTHING, ANYONE, at()).job
    assert (none.result, none.result_stored_at) == (NOTHING, None)


def test_a_result_ttl_of_zero_keeps_no_result() -> None:
    transition = ack(active(result_ttl_s=0), Raw(b"1"), ANYONE, at())
    assert (transition.job.result, transition.job.result_stored_at, transition.ttl_s) == (NOTHING, None, 7 * DAY_S)


LARGE = Raw(b"1" * (INLINE_BYTES + 1))


@pytest.mark.parametrize("members", [{}, {"result_ttl_s": 7 * DAY_S}, {"result_ttl_s": 30 * DAY_S}, {"result_ttl_s": -1}])
def test_a_small_result_that_stays_as_long_as_its_job_is_part_of_the_record(members: Any) -> None:
    transition = ack(active(**members), Raw(b"1" * INLINE_BYTES), ANYONE, at())
    assert (len(transition.job.result), transition.job.result_blob, transition.effects) == (INLINE_BYTES, None, ())


@pytest.mark.parametrize(
    ("members", "result", "kept_s"),
    [
        ({}, LARGE, 7 * DAY_S),
        ({"retention": Retention(completed_s=DAY_S)}, LARGE, DAY_S),
        ({"result_ttl_s": 30 * DAY_S}, LARGE, 30 * DAY_S),
        ({"result_ttl_s": 1}, LARGE, 1),
        ({"result_ttl_s": 1}, Raw(b"1"), 1),
        ({"result_ttl_s": 1, "workflow": MEMBER}, Raw(b"1"), HOUR_S),  # until its coordinator has it
        ({"result_ttl_s": 0, "workflow": MEMBER}, Raw(b"1"), HOUR_S),
    ],
)
def test_a_large_result_and_one_that_leaves_before_its_job_are_set_apart(members: Any, result: Raw, kept_s: int) -> None:
    moment = at(SECOND)
    transition = ack(active(**members), result, ANYONE, moment)
    job = transition.job
    assert transition.effects[0] == Apart(moment.op, result, kept_s)
    assert (job.result, job.result_blob, job.result_stored_at) == (NOTHING, Blob(moment.op, len(result)), T0 + SECOND)
    assert job.result_bytes == len(result)
    assert transition.ttl_s is not None
    assert transition.ttl_s >= kept_s


def test_a_large_result_that_stays_for_ever_stays_in_the_record() -> None:
    """Beside it, a crash would leave it behind for ever."""
    transition = ack(active(result_ttl_s=-1), LARGE, ANYONE, at())
    assert (transition.job.result, transition.effects, transition.ttl_s) == (LARGE, (), None)


@pytest.mark.parametrize(("limit", "size"), [(None, 1_048_576), (10, 10), (2_000_000, 1_500_000)])
def test_a_result_is_refused_above_its_limit(limit: int | None, size: int) -> None:
    job = active(result_size_limit=limit)
    assert ack(job, Raw(b"1" * size), ANYONE, at()).job.state is State.COMPLETED
    with pytest.raises(OjsError) as refusal:
        ack(job, Raw(b"1" * ((limit or size) + 1)), ANYONE, at())
    assert (refusal.value.code, refusal.value.details["max_bytes"]) == ("result_too_large", limit or size)


# NACK


def test_nack_waits_for_the_back_off_while_attempts_remain() -> None:
    moment = at(SECOND)
    transition = nack(active(), Failure(message="boom", code="handler_error", type="X"), ANYONE, moment)
    job = transition.job
    assert (job.state, job.attempt, job.retry_delay_ms, job.next_attempt_at) == (State.RETRYABLE, 1, 1_000, T0 + 2_000)
    assert job.error == job.errors[-1]
    assert (job.error.code, job.error.type, job.error.message, job.error.attempt, job.error.at) == (
        "handler_error",
        "X",
        "boom",
        1,
        T0 + SECOND,
    )
    assert (job.worker, job.visible_until, job.beat_at, job.started_at) == (None, None, None, T0)
    assert (job.discarded_at, job.completed_at, job.token, transition.ttl_s) == (None, None, None, None)
    assert job.timer == Timer(moment.op, T0 + 2_000, "scheduler")


def test_the_delay_counts_failures_and_uses_the_moments_chance() -> None:
    job = replace(active(), attempt=2)
    assert nack(job, Failure(message="no"), ANYONE, at(chance=0.25)).job.retry_delay_ms == 1_500


@pytest.mark.parametrize("max_attempts", [0, 1])
def test_a_policy_without_retries_runs_once(max_attempts: int) -> None:
    assert _nack(active(retry=once(max_attempts=max_attempts))).state is State.DISCARDED


@pytest.mark.parametrize(("attempt", "state"), [(1, State.RETRYABLE), (2, State.RETRYABLE), (3, State.DISCARDED)])
def test_the_job_runs_at_most_max_attempts_times(attempt: int, state: State) -> None:
    assert _nack(replace(active(), attempt=attempt)).state is state


@pytest.mark.parametrize(("on_exhaustion", "dead", "days"), [("discard", False, 30), ("dead_letter", True, 180)])
def test_exhaustion_follows_the_policy(on_exhaustion: Any, dead: bool, days: int) -> None:
    transition = nack(active(retry=once(on_exhaustion=on_exhaustion)), Failure(message="no"), ANYONE, at(SECOND))
    job = transition.job
    assert (job.state, job.dead_letter) == (State.DISCARDED, dead)
    assert (job.discarded_at, job.completed_at, job.next_attempt_at) == (T0 + SECOND, T0 + SECOND, None)
    assert job.error is not None
    assert (transition.ttl_s, job.timer, job.token) == (days * DAY_S, None, None)


@each("on_exhaustion", ["discard", "dead_letter"])
@each("where", ["code", "action"])
@each(
    ("response", "state", "dead"),
    [
        ("RETRY", State.RETRYABLE, False),
        ("DISCARD", State.DISCARDED, False),
        ("FAIL", State.DISCARDED, False),
        ("DEAD_LETTER", State.DISCARDED, True),
    ],
)
def test_the_handlers_response_code_outweighs_the_policy(
    on_exhaustion: Any, where: str, response: str, state: State, dead: bool
) -> None:
    said: dict[str, Any] = {where: response}
    job = _nack(active(retry=Retry(on_exhaustion=on_exhaustion)), **said)
    assert (job.state, job.dead_letter) == (state, dead)
    assert job.error is not None
    assert (job.error.code, job.error.type) == ("handler_error", "handler_error")


def test_an_action_beside_a_code_leaves_the_code_alone() -> None:
    error = _nack(active(), code="card_declined", action="DISCARD").error
    assert error is not None
    assert (error.code, error.type) == ("card_declined", "card_declined")


def test_retry_outweighs_the_flag_but_neither_the_list_nor_exhaustion() -> None:
    assert _nack(active(), code="RETRY", retryable=False).state is State.RETRYABLE
    assert _nack(active(retry=Retry(non_retryable_errors=("X",))), code="RETRY", type="X").state is State.DISCARDED
    assert _nack(active(retry=once()), code="RETRY").state is State.DISCARDED


@pytest.mark.parametrize(("on_exhaustion", "dead"), [("discard", False), ("dead_letter", True)])
def test_a_failure_that_is_not_retryable_ends_the_job(on_exhaustion: Any, dead: bool) -> None:
    job = _nack(active(retry=Retry(on_exhaustion=on_exhaustion)), retryable=False)
    assert (job.state, job.dead_letter) == (State.DISCARDED, dead)


@each(
    ("members", "state"),
    [
        ({"type": "auth.token_expired"}, State.DISCARDED),
        ({"type": "auth.x.y"}, State.DISCARDED),
        ({"type": "auth"}, State.RETRYABLE),
        ({"type": "authentic"}, State.RETRYABLE),
        ({"type": "external.auth.failure"}, State.RETRYABLE),
        ({"type": "validation.bad"}, State.DISCARDED),
        ({"type": "validation.bad.worse"}, State.RETRYABLE),
        ({"code": "validation.bad"}, State.DISCARDED),
        ({"code": "validation.bad", "type": "other"}, State.DISCARDED),
        ({"type": "other", "details": Raw(b'{"error_class":"auth.denied"}')}, State.DISCARDED),
        ({"type": "other", "details": Raw(b'{"error_class":7}')}, State.RETRYABLE),
        ({"type": "other", "details": Raw(b'{"error_class":"auth.%s"}' % (b"x" * 20_000))}, State.DISCARDED),
    ],
)
def test_the_list_of_the_policy_is_matched_exactly_or_by_prefix(members: dict[str, Any], state: State) -> None:
    policy = Retry(non_retryable_errors=("validation.bad", "auth.*"))
    assert _nack(active(retry=policy), **members).state is state


# Requeue


def test_requeue_gives_the_job_back_unharmed() -> None:
    moment = at(SECOND)
    transition = nack(active(), Failure(message="bye", retryable=False, requeue=True), ANYONE, moment)
    job = transition.job
    assert (job.state, job.attempt, job.uncharged) == (State.AVAILABLE, 1, 1)
    assert (job.started_at, job.error, job.errors, job.worker) == (None, None, (), None)
    assert (job.token, job.enqueued_at) == (moment.op, T0 + SECOND)


def test_requeue_outweighs_a_response_code() -> None:
    assert _nack(active(), code="DISCARD", requeue=True).state is State.AVAILABLE


def test_a_requeued_attempt_is_not_charged() -> None:
    again = claim(_nack(active(retry=Retry(max_attempts=2)), requeue=True), "w1", None, at(SECOND)).job
    first = _nack(again)
    assert (first.state, first.attempt, first.retry_delay_ms) == (State.RETRYABLE, 2, 1_000)
    last = _nack(replace(again, attempt=3))
    assert last.state is State.DISCARDED


def test_a_job_can_be_put_off_unharmed() -> None:
    moment = at(SECOND)
    job = nack(active(), Failure(message="not now", requeue=True, delay_ms=60 * SECOND), ANYONE, moment).job
    assert (job.state, job.attempt, job.uncharged, job.worker, job.errors) == (State.RETRYABLE, 1, 1, None, ())
    assert (job.next_attempt_at, job.started_at) == (T0 + 61 * SECOND, None)


def test_a_failure_may_name_its_own_pause() -> None:
    job = _nack(active(retry=Retry(max_attempts=2)), delay_ms=5)
    assert (job.state, job.retry_delay_ms) == (State.RETRYABLE, 5)
    assert _nack(active(retry=Retry(max_attempts=1)), delay_ms=5).state is State.DISCARDED, "no attempt is left"


# The error history


@each(
    ("members", "code", "kind"),
    [
        ({}, "handler_error", "handler_error"),
        ({"code": "x_bad"}, "x_bad", "x_bad"),
        ({"code": "x_bad", "type": "T"}, "x_bad", "T"),
        ({"code": "x_bad", "details": Raw(b'{"error_class":"C"}')}, "x_bad", "C"),
        ({"type": "T", "details": Raw(b'{"error_class":"C"}')}, "handler_error", "T"),
        ({"code": "RETRY", "details": Raw(b'{"error_class":"C"}')}, "handler_error", "C"),
        ({"code": "x_bad", "details": Raw(b"[1]")}, "x_bad", "x_bad"),
        ({"code": "x_bad", "details": Raw(b'"text"')}, "x_bad", "x_bad"),
    ],
)
def test_every_error_has_a_code_and_a_type(members: dict[str, Any], code: str, kind: str) -> None:
    error = _nack(active(), **members).error
    assert error is not None
    assert (error.code, error.type) == (code, kind)


def test_what_a_record_cannot_carry_is_cut_or_replaced() -> None:
    job = _nack(
        active(),
        message="é" * 10_001,
        backtrace=Raw(b'"' + b"x" * 9_999 + b'"'),
        details=Raw(b'{"a":"' + b"x" * 16_384 + b'"}'),
    )
    assert job.error is not None
    assert len(job.error.message) == 10_000
    assert json(job.error.backtrace).startswith("… cut here: 10,002 bytes in all; the limit is 10,000 bytes\nxxx")
    assert json(job.error.details)["a"].endswith("xxx")
    assert json(job.error.details)["truncated"] == {"actual_bytes": 16_392, "max_bytes": 16_384}


def test_what_fits_is_kept_as_it_was_sent() -> None:
    backtrace, details = Raw(b'["a", "b"]'), Raw(b'{ "a" : 1.0 }')
    error = _nack(active(), backtrace=backtrace, details=details, retryable=False).error
    assert error is not None
    assert (error.backtrace, error.details, error.retryable) == (backtrace, details, False)


def test_what_is_as_large_as_it_may_be_is_kept() -> None:
    backtrace, details = Raw(b'"' + b"x" * 9_998 + b'"'), Raw(b'{"a":"' + b"x" * 16_376 + b'"}')
    error = _nack(active(), backtrace=backtrace, details=details).error
    assert error is not None
    assert (len(backtrace), len(details)) == (10_000, 16_384)
    assert (error.backtrace, error.details) == (backtrace, details)


def test_the_newest_twenty_five_errors_stay() -> None:
    job = active(retry=Retry(max_attempts=100))
    for attempt in range(1, 31):
        job = _nack(replace(job, state=State.ACTIVE, attempt=attempt))
    assert [error.attempt for error in job.errors] == list(range(6, 31))
    assert job.error == job.errors[-1]
