from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions import (
    Failure,
    JobHolder,
    Transition,
    ack,
    activate,
    cancel,
    claim,
    due,
    nack,
    push,
    reissue,
)
from ojs_engine.domain.transitions.retention import result_expires_at, retention_s
from support.tables import each
from unit.domain.transitions.samples import (
    ANYONE,
    SECOND,
    T0,
    active,
    at,
    available,
    completed,
    dead_letter,
    discarded,
    draft,
    pending,
)

DAY_S = 86_400


def test_of_two_deadlines_at_once_the_limit_goes_first() -> None:
    job = nack(active(total_timeout_ms=SECOND), Failure(message="no"), ANYONE, at()).job
    assert job.timer is not None
    assert (job.timer.at, job.timer.service) == (T0 + SECOND, "reaper")


ROWS: list[tuple[str, Callable[[], Transition], State | None, State]] = [
    ("pushed", lambda: push(draft(), at()), None, State.AVAILABLE),
    ("activated", lambda: activate(pending(), at()), State.PENDING, State.AVAILABLE),
    ("claimed", lambda: claim(available(), "w1", None, at()), State.AVAILABLE, State.ACTIVE),
    ("acked", lambda: ack(active(), NOTHING, ANYONE, at()), State.ACTIVE, State.COMPLETED),
    ("failed", lambda: nack(active(), Failure(message="no"), ANYONE, at()), State.ACTIVE, State.RETRYABLE),
    ("requeued", lambda: nack(active(), Failure(message="", requeue=True), ANYONE, at()), State.ACTIVE, State.AVAILABLE),
    ("cancelled", lambda: cancel(active(), at()), State.ACTIVE, State.CANCELLED),
    ("lease_expired", lambda: _due(active(lease_ms=1)), State.ACTIVE, State.AVAILABLE),
    ("timed_out", lambda: _due(active(timeout_ms=1)), State.ACTIVE, State.RETRYABLE),
    ("stalled", lambda: _due(active(heartbeat_timeout_ms=1)), State.ACTIVE, State.RETRYABLE),
    ("total_timed_out", lambda: _due(active(total_timeout_ms=1)), State.ACTIVE, State.DISCARDED),
    ("expired", lambda: _due(pending(expires_at=T0 + 1)), State.PENDING, State.DISCARDED),
    ("ttl_expired", lambda: _due(available(enqueue_ttl_ms=1)), State.AVAILABLE, State.DISCARDED),
]


def _due(job: Job) -> Transition:
    decision = due(job, at(SECOND))
    assert isinstance(decision, Transition)
    return decision


@each(("event", "run", "before", "after"), ROWS, ids=[row[0] for row in ROWS])
def test_each_transition_is_logged(event: str, run: Callable[[], Transition], before: State | None, after: State) -> None:
    job = run().job
    entry = job.transitions[-1]
    assert (entry.event, entry.before, entry.after, entry.attempt) == (event, before, after, job.attempt)
    assert [entry.n for entry in job.transitions] == list(range(1, len(job.transitions) + 1))
    assert entry.worker == ("w1" if State.ACTIVE in (before, after) else None)


def test_the_log_keeps_the_last_64_and_goes_on_counting() -> None:
    job = available()
    for n in range(2, 101):
        moment = at(n)
        job = reissue(job, moment).job
        assert (job.transitions[-1].n, job.transitions[-1].op, job.transitions[-1].at) == (n, moment.op, T0 + n)
    assert [entry.n for entry in job.transitions] == list(range(37, 101))


@each(
    ("make", "result_ttl_s", "kept_s"),
    [
        (completed, None, 7 * DAY_S),
        (completed, 60, 7 * DAY_S),
        (completed, 60 * DAY_S, 60 * DAY_S),
        (completed, 0, 7 * DAY_S),
        (completed, -1, None),
        (discarded, None, 30 * DAY_S),
        (discarded, 31 * DAY_S, 31 * DAY_S),
        (dead_letter, None, 180 * DAY_S),
        (dead_letter, 31 * DAY_S, 180 * DAY_S),
    ],
)
def test_a_finished_record_stays_for_its_retention(make: Any, result_ttl_s: int | None, kept_s: int | None) -> None:
    assert retention_s(make(result_ttl_s=result_ttl_s)) == kept_s


def test_a_refusal_leaves_the_document_alone() -> None:
    job = active("w1")
    assert ack(job, Raw(b"1"), JobHolder("w1", 1), at()).job is not job
    assert (job.state, job.result) == (State.ACTIVE, NOTHING)


@pytest.mark.parametrize(("ttl_s", "expires_at"), [(7, T0 + 7 * SECOND), (-1, None), (None, T0 + 7 * DAY_S * SECOND)])
def test_a_result_leaves_to_the_millisecond_when_it_should(ttl_s: int | None, expires_at: int | None) -> None:
    job = replace(completed(), result_stored_at=T0, result_ttl_s=ttl_s)
    assert result_expires_at(job) == expires_at
    assert result_expires_at(replace(job, result_stored_at=None)) is None
