from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import EMPTY_OBJECT, NOTHING, TERMINAL, Job, Membership, Retry, State
from ojs_engine.domain.transitions import (
    Failure,
    RetryOverride,
    Transition,
    activate,
    cancel,
    claim,
    delete,
    extend,
    nack,
    prune,
    reissue,
    reprioritise,
    retry_by_hand,
    retry_discarded,
    retry_now,
    retry_one,
    run_now,
)
from ojs_engine.domain.unique import keyed
from unit.domain.transitions.samples import (
    ANYONE,
    SAMPLES,
    SECOND,
    T0,
    active,
    at,
    available,
    cancelled,
    completed,
    dead_letter,
    discarded,
    json,
    pending,
    retryable,
    scheduled,
)

KEEP = RetryOverride()


# Cancel


@pytest.mark.parametrize("state", [state for state in State if state not in TERMINAL])
def test_cancel_ends_every_job_that_has_not_ended(state: State) -> None:
    job = SAMPLES[state]()
    transition = cancel(job, at(SECOND), "not needed")
    new = transition.job
    assert (new.state, new.cancelled_at, new.completed_at, new.discarded_at) == (State.CANCELLED, T0 + SECOND, None, None)
    assert (new.attempt, new.token, new.timer, new.next_attempt_at) == (job.attempt, None, None, None)
    assert transition.ttl_s == 7 * 86_400
    assert (new.transitions[-1].event, new.transitions[-1].reason) == ("cancelled", "not needed")


def test_a_cancelled_run_still_names_its_worker() -> None:
    assert cancel(active("w1"), at()).job.worker == "w1"


@pytest.mark.parametrize(
    ("make", "canonical"),
    [
        (completed, "JOB_ALREADY_COMPLETED"),
        (cancelled, "JOB_ALREADY_CANCELLED"),
        (discarded, "INVALID_STATE_TRANSITION"),
    ],
)
def test_a_job_that_has_ended_is_not_cancelled(make: Any, canonical: str) -> None:
    job = make()
    with pytest.raises(OjsError) as refusal:
        cancel(job, at())
    assert (refusal.value.code, refusal.value.canonical) == ("conflict", canonical)
    assert refusal.value.details["current_state"] == job.state


# Manual retry


@pytest.mark.parametrize("make", [discarded, dead_letter])
def test_manual_retry_begins_a_new_life(make: Any) -> None:
    job = replace(make(), uncharged=1, attempt=4, retry_delay_ms=5)
    moment = at(SECOND)
    transition = retry_discarded(job, KEEP, moment)
    new = transition.job
    assert (new.state, new.attempt, new.uncharged, new.generation) == (State.AVAILABLE, 0, 0, 1)
    assert (new.error, new.errors, new.dead_letter, new.retry_delay_ms) == (None, job.errors, False, None)
    assert (new.re_enqueued_at, new.enqueued_at, new.created_at) == (T0 + SECOND, T0 + SECOND, T0)
    assert (new.started_at, new.completed_at, new.discarded_at) == (None, None, None)
    assert (new.token, transition.ttl_s) == (moment.op, None)
    assert (new.retry, new.queue, new.args, new.meta) == (job.retry, job.queue, job.args, job.meta)
    assert new.transitions[-1].reason == ("dead_letter" if job.dead_letter else None)


def test_errors_say_in_which_life_they_happened() -> None:
    job = claim(retry_discarded(discarded(), KEEP, at()).job, "w1", None, at()).job
    errors = nack(job, Failure(message="no"), ANYONE, at()).job.errors
    assert [(error.generation, error.attempt) for error in errors] == [(0, 1), (1, 1)]


def test_manual_retry_takes_overrides() -> None:
    job = discarded(meta=Raw(b'{"a":1,"b":2}'))
    override = RetryOverride(queue="other", meta=Raw(b'{"b":3,"c":4}'), retry=Retry(max_attempts=1), args=Raw(b"[7]"))
    new = retry_discarded(job, override, at()).job
    assert (new.queue, new.retry, json(new.args)) == ("other", Retry(max_attempts=1), [7])
    assert json(new.meta) == {"a": 1, "b": 3, "c": 4}


def test_manual_retry_gives_the_time_limits_a_new_start() -> None:
    job = discarded(total_timeout_ms=2 * SECOND, enqueue_ttl_ms=3 * SECOND)
    timer = retry_discarded(job, KEEP, at(10 * SECOND)).job.timer
    assert timer is not None
    assert timer.at == T0 + 12 * SECOND


@pytest.mark.parametrize(("expires_at", "kept"), [(T0 + 5 * SECOND, False), (T0 + 20 * SECOND, True)])
def test_manual_retry_drops_an_expiry_that_has_passed(expires_at: int, kept: bool) -> None:
    job = discarded(expires_at=expires_at, verbatim={"expires_at": "then", "scheduled_at": "once"})
    new = retry_discarded(job, KEEP, at(10 * SECOND)).job
    assert new.expires_at == (expires_at if kept else None)
    assert ("expires_at" in new.verbatim, "scheduled_at" in new.verbatim) == (kept, True)


@pytest.mark.parametrize("state", [state for state in State if state is not State.DISCARDED])
def test_only_a_discarded_job_is_retried_or_deleted(state: State) -> None:
    job = SAMPLES[state]()
    commands: list[Callable[[], object]] = [lambda: retry_discarded(job, KEEP, at()), lambda: delete(job, at())]
    for command in commands:
        with pytest.raises(OjsError) as refusal:
            command()
        assert refusal.value.code == "conflict"


# Deletion


def test_delete_leaves_a_tombstone() -> None:
    job = dead_letter(meta=Raw(b'{"secret":1}'))
    transition = delete(job, at(SECOND))
    new = transition.job
    assert (new.id, new.type, new.state, new.deleted, json(new.args)) == (job.id, job.type, job.state, True, [])
    assert (new.errors, new.error, new.timer, new.token) == ((), None, None, None)
    assert (new.meta, new.result) == (EMPTY_OBJECT, NOTHING)
    assert transition.ttl_s == 3_600
    assert new.transitions[:-1] == job.transitions
    last = new.transitions[-1]
    assert (last.event, last.before, last.after) == ("deleted", State.DISCARDED, None)


def test_one_too_many_leaves_a_tombstone_that_says_so() -> None:
    job = dead_letter()
    assert job.discarded_at is not None
    transition = prune(job, job.discarded_at, at(SECOND))
    last = transition.job.transitions[-1]
    assert (transition.job.deleted, transition.ttl_s) == (True, 3_600)
    assert (last.event, last.reason, last.before, last.after) == ("pruned", "max_count", State.DISCARDED, None)


@pytest.mark.parametrize(
    ("job", "code"),
    [
        (retry_discarded(dead_letter(), RetryOverride(), at()).job, "conflict"),  # it was retried meanwhile
        (dead_letter(), "not_found"),  # and died again
        (discarded(), "not_found"),
        (delete(dead_letter(), at()).job, "not_found"),
    ],
)
def test_what_is_not_that_dead_letter_any_more_is_not_pruned(job: Job, code: str) -> None:
    with pytest.raises(OjsError) as refusal:
        prune(job, T0 - 1, at())
    assert refusal.value.code == code


def test_a_discarded_job_outside_the_dead_letters_is_not_found_there() -> None:
    with pytest.raises(OjsError) as refusal:
        delete(discarded(), at())
    assert refusal.value.code == "not_found"


def test_a_tombstone_is_gone_for_every_command() -> None:
    tombstone = delete(dead_letter(), at()).job
    commands: list[Callable[[], object]] = [
        lambda: delete(tombstone, at()),
        lambda: retry_discarded(tombstone, KEEP, at()),
        lambda: cancel(tombstone, at()),
        lambda: claim(tombstone, "w1", None, at()),
        lambda: extend(tombstone, "w1", None, at()),
        lambda: nack(tombstone, Failure(message="no"), ANYONE, at()),
        lambda: activate(tombstone, at()),
        lambda: reissue(tombstone, at()),
    ]
    for command in commands:
        with pytest.raises(OjsError) as refusal:
            command()
        assert refusal.value.code == "not_found"


def test_a_job_that_was_never_discarded_keeps_its_place() -> None:
    job = available()
    with pytest.raises(OjsError):
        retry_discarded(job, KEEP, at())
    assert job.state is State.AVAILABLE


def test_an_available_job_gets_a_token_of_its_new_priority() -> None:
    moment = at()
    found = reprioritise(available(priority=5), -7, moment)
    assert (found.job.priority, found.job.token) == (-7, moment.op)
    assert found.job.transitions[-1].event == "reprioritised"
    assert found.job.transitions[-1].reason == "5 to -7"


@pytest.mark.parametrize("make", [pending, scheduled])
def test_a_job_that_is_not_available_yet_changes_its_priority_without_a_token(make: Callable[..., Job]) -> None:
    before = make()
    found = reprioritise(before, 9, at()).job
    assert (found.priority, found.state, found.token, found.timer) == (9, before.state, None, before.timer)


@pytest.mark.parametrize("make", [active, retryable, completed, cancelled, discarded])
def test_the_priority_of_a_job_that_was_fetched_stays(make: Callable[..., Job]) -> None:
    with pytest.raises(OjsError) as refusal:
        reprioritise(make(), 9, at())
    assert refusal.value.code == "conflict"


def test_the_wait_for_a_retry_can_be_ended() -> None:
    before = retryable()
    moment = at()
    found = retry_now(before, moment).job
    assert (found.state, found.token, found.next_attempt_at) == (State.AVAILABLE, moment.op, None)
    assert found.attempt == before.attempt
    with pytest.raises(OjsError):
        retry_now(available(), at())


@pytest.mark.parametrize("act", [retry_by_hand, retry_one])
def test_a_retry_by_hand_ends_a_wait_and_begins_a_new_life_after_the_last_attempt(act: Callable[..., Transition]) -> None:
    waits, ended = act(retryable(), at()).job, act(discarded(), at()).job
    assert [(job.state, job.attempt, job.generation) for job in (waits, ended)] == [
        (State.AVAILABLE, 1, 0),
        (State.AVAILABLE, 0, 1),
    ]
    for job in (available(), active(), completed()):
        with pytest.raises(OjsError) as refused:
            act(job, at())
        assert refused.value.code == "conflict"


def test_an_operator_gives_a_cancelled_job_a_new_life() -> None:
    moment = at()
    found = retry_one(cancelled(), moment).job
    assert (found.state, found.attempt, found.token) == (State.AVAILABLE, 0, moment.op)


def test_who_retries_a_step_that_was_cancelled_learns_what_to_retry() -> None:
    step = cancelled(workflow=Membership(id="wf-1", node=0, kind="chain", step="0", index=0, size=2))
    with pytest.raises(OjsError, match="it was cancelled within workflow wf-1; retry the workflow") as refusal:
        retry_one(step, at())
    assert refusal.value.code == "conflict"


def test_a_retry_with_other_args_has_another_fingerprint() -> None:
    unique = keyed(discarded(unique=Raw(b'{"keys":["args"]}'), args=Raw(b"[1]")))
    assert retry_discarded(unique, KEEP, at()).job.unique_key == unique.unique_key
    changed = retry_discarded(unique, RetryOverride(args=Raw(b"[2]")), at()).job
    assert changed.unique_key == keyed(changed).unique_key != unique.unique_key


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYABLE, State.PENDING])
def test_a_job_that_waits_for_its_time_runs_now(state: State) -> None:
    before = SAMPLES[state]()
    moment = at()
    found = run_now(before, moment).job
    assert (found.state, found.token, found.enqueued_at) == (State.AVAILABLE, moment.op, T0)
    assert found.transitions[-1].event == ("activated" if before.state is State.PENDING else "promoted")


@pytest.mark.parametrize("state", [State.AVAILABLE, State.ACTIVE, *sorted(TERMINAL)])
def test_a_job_that_does_not_wait_for_its_time_can_not_run_now(state: State) -> None:
    with pytest.raises(OjsError) as refusal:
        run_now(SAMPLES[state](), at())
    assert refusal.value.code == "conflict"
