"""The attempts of a job."""

from __future__ import annotations

from msgspec import Raw

from ojs_engine.domain.job import State
from ojs_engine.domain.transitions import Failure, RetryOverride, ack, claim, due, nack, push, retry_discarded
from ojs_engine.domain.transitions.result import Transition
from ojs_features.history.attempts import attempts_of
from unit.domain.transitions.samples import ANYONE, SECOND, T0, active, at, draft


def test_each_attempt_says_when_it_began_and_ended() -> None:
    job = claim(push(draft(queue="mail"), at()).job, "w", None, at(2 * SECOND)).job
    job = nack(job, Failure(message="m", code="c", type="T"), ANYONE, at(3 * SECOND)).job
    promoted = due(job, at(5 * SECOND))
    assert isinstance(promoted, Transition)
    job = claim(promoted.job, "w", None, at(6 * SECOND)).job
    job = ack(job, Raw(b"1"), ANYONE, at(7 * SECOND)).job
    assert [(one.number, one.started_at, one.ended_at, one.outcome) for one in attempts_of(job)] == [
        (1, T0 + 2 * SECOND, T0 + 3 * SECOND, "failed"),
        (2, T0 + 6 * SECOND, T0 + 7 * SECOND, "acked"),
    ]


def test_attempts_say_what_ended_them() -> None:
    job = nack(active(), Failure(message="no", code="c", type="T", action="DEAD_LETTER"), ANYONE, at(SECOND)).job
    job = retry_discarded(job, RetryOverride(), at(2 * SECOND)).job
    job = claim(job, "w2", None, at(3 * SECOND)).job
    first, second = attempts_of(job)
    assert (first.number, first.generation, first.worker, first.started_at) == (1, 0, "w1", T0)
    assert (first.ended_at, first.outcome, first.after) == (T0 + SECOND, "failed", State.DISCARDED)
    assert first.error is not None
    assert (first.error.message, first.error.type) == ("no", "T")
    assert (second.number, second.generation, second.worker, second.ended_at) == (1, 1, "w2", None)
