"""Where a failed attempt leads: another attempt, or the end with or without the dead letter queue (ojs-retry §7, §9)."""

from __future__ import annotations

from typing import Literal

from ojs_engine.domain.job import Job, JobError, State
from ojs_engine.domain.transitions.backoff import delay_ms
from ojs_engine.domain.transitions.failure import recorded
from ojs_engine.domain.transitions.log import TransitionName
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.settle import conclude, entered, made_available, waiting

FailureVerdict = Literal["retry", "at_once", "end", "discard", "dead_letter"]
"""`retry` after the back-off and `at_once` as long as attempts remain; `end` as the policy's `on_exhaustion` says;
`discard` and `dead_letter` whatever the policy says."""


def exhausted(job: Job) -> bool:
    """Whether the running attempt is the last. It counts itself, so `max_attempts` 0 and 1 both allow one."""
    return job.attempt - job.uncharged >= job.retry.max_attempts


def requeued(job: Job, moment: Moment, delay_ms: int | None = None, reason: str | None = None) -> Transition:
    """Give the job back without counting the attempt: available at once, or after a delay."""
    unharmed = {"started_at": None, "uncharged": job.uncharged + 1}
    new = made_available(job, moment, **unharmed) if delay_ms is None else waiting(job, delay_ms, moment, **unharmed)
    return conclude(job, new, moment, "requeued", worker=job.worker, reason=reason)


def failed(
    job: Job, error: JobError, verdict: FailureVerdict, moment: Moment, event: TransitionName, asked_ms: int | None = None
) -> Transition:
    """End the running attempt with `error`; `asked_ms` is a pause before the next one in place of the policy's."""
    new = recorded(job, error)
    if verdict in ("retry", "at_once") and exhausted(job):
        verdict = "end"
    if verdict == "at_once":
        new = made_available(new, moment, retry_delay_ms=None)
    elif verdict == "retry":
        pause = delay_ms(job.retry, job.attempt - job.uncharged, moment.chance) if asked_ms is None else asked_ms
        new = waiting(new, pause, moment)
    else:
        dead = verdict == "dead_letter" or (verdict == "end" and job.retry.on_exhaustion == "dead_letter")
        new = discarded(new, moment, dead_letter=dead)
    return conclude(job, new, moment, event, worker=job.worker, reason=error.type)


def discarded(job: Job, moment: Moment, *, dead_letter: bool = False) -> Job:
    """The job at its bad end. Only a run has a completion: a job that was merely waiting gets no `completed_at`."""
    completed_at = moment.now if job.state is State.ACTIVE else None
    return entered(
        job,
        State.DISCARDED,
        discarded_at=moment.now,
        completed_at=completed_at,
        retry_delay_ms=None,
        dead_letter=dead_letter,
    )
