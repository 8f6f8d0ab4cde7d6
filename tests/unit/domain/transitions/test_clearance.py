from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.events.vocabulary import events_of
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Failure, JobHolder, Moment

NOW = Moment(1_000, "op1")
LATER = Moment(5_000, "op2")


def pushed(**members: object) -> Job:
    draft = Job(id="j", type="mail.send", args=Raw(b"[]"), state=State.AVAILABLE, queue="mail")
    return transitions.push(replace(draft, **members), NOW).job


def claimed() -> Job:
    return transitions.claim(pushed(), "w", None, NOW).job


def told(job: Job) -> list[str]:
    return [event.type for event in events_of(job, job.transitions[-1])]


@pytest.mark.parametrize(
    "job",
    [
        pushed(),
        pushed(scheduled_at=9_000),
        pushed(state=State.PENDING),
        transitions.nack(claimed(), Failure(message="no"), JobHolder(), NOW).job,
    ],
    ids=lambda job: job.state,
)
def test_a_waiting_job_is_dropped_with_the_reason_as_its_error(job: Job) -> None:
    transition = transitions.drop(job, "queue_deleted", LATER)
    gone = transition.job
    assert (gone.state, gone.discarded_at, gone.dead_letter, gone.token) == (State.DISCARDED, 5_000, False, None)
    assert gone.error is not None
    assert gone.error.type == "queue_deleted"
    assert transition.ttl_s
    assert told(gone) == ["job.discarded"]


def test_an_available_job_gets_a_token_in_the_queue_that_it_moves_to() -> None:
    job = transitions.move(pushed(), "post", LATER).job
    assert (job.queue, job.state, job.token) == ("post", State.AVAILABLE, "op2")
    assert told(job) == ["job.enqueued"]


def test_a_scheduled_job_keeps_its_time_when_it_moves() -> None:
    job = pushed(scheduled_at=9_000)
    moved = transitions.move(job, "post", LATER).job
    assert (moved.queue, moved.timer) == ("post", job.timer)
    assert told(moved) == []


def test_a_finished_job_is_removed_and_its_id_stays_guarded() -> None:
    job = transitions.ack(claimed(), Raw(b"1"), JobHolder(), NOW).job
    transition = transitions.remove(job, LATER)
    assert (transition.job.deleted, transition.job.result, transition.ttl_s) == (True, Raw(b""), 3_600)
    assert told(transition.job) == []


@pytest.mark.parametrize(
    ("failure", "event"),
    [(Failure(message="no", action="DISCARD"), "removed"), (Failure(message="no", action="DEAD_LETTER"), "deleted")],
    ids=["discarded", "dead letter"],
)
def test_the_log_tells_the_deletion_of_a_dead_letter_from_other_removals(failure: Failure, event: str) -> None:
    job = transitions.nack(claimed(), failure, JobHolder(), NOW).job
    assert transitions.remove(job, LATER).job.transitions[-1].event == event


@pytest.mark.parametrize("action", ["drop", "move", "remove"])
def test_an_active_job_is_left_alone(action: str) -> None:
    job = claimed()
    acts = {
        "drop": lambda: transitions.drop(job, "overflow", LATER),
        "move": lambda: transitions.move(job, "post", LATER),
        "remove": lambda: transitions.remove(job, LATER),
    }
    with pytest.raises(OjsError, match="active") as caught:
        acts[action]()
    assert caught.value.code == "conflict"
