"""Entering the queue: push and activation."""

from __future__ import annotations

from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions.failure import recorded
from ojs_engine.domain.transitions.limits import server_error
from ojs_engine.domain.transitions.outcome import discarded
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.settle import conclude, made_available, require


def waits_at_once(draft: Job, now: int) -> bool:
    """Whether a push at `now` (Unix ms) makes the job available."""
    return draft.state is not State.PENDING and (draft.scheduled_at is None or draft.scheduled_at <= now)


def push(draft: Job, moment: Moment) -> Transition:
    """Create the job: pending if the draft is, scheduled if its time is still to come, else available.

    `enqueued_at` says when it became available, so a scheduled job has none yet.
    """
    job = replace(draft, created_at=moment.now)
    if draft.state is State.PENDING:
        new = job
    elif draft.scheduled_at is not None and draft.scheduled_at > moment.now:
        new = replace(job, state=State.SCHEDULED)
    else:
        new = made_available(job, moment)
    return conclude(None, new, moment, "pushed")


def push_discarded(draft: Job, problem: OjsError, moment: Moment) -> Transition:
    """Create a job as discarded that may not be, because somebody waits for its end: a member of a workflow.

    It is nobody's duplicate, and never a dead letter.
    """
    job = replace(draft, created_at=moment.now, unique_key=None)
    error = server_error(job, problem.code, problem.message, moment.now, retryable=False)
    return conclude(None, discarded(recorded(job, error), moment), moment, "dropped", reason=problem.code)


def activate(job: Job, moment: Moment) -> Transition:
    """Release a pending job. Raises `conflict` in any other state."""
    require(job, "activate", State.PENDING)
    return conclude(job, made_available(job, moment, activated_at=moment.now), moment, "activated")
