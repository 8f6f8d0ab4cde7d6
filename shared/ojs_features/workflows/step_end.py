"""How a job's own document reads as a step's end."""

from __future__ import annotations

from ojs_engine.domain.job import Job, State
from ojs_features.workflows.advance import StepOutcome
from ojs_features.workflows.record import StepError


def outcome_of(job: Job) -> StepOutcome | None:
    """None while the job hasn't ended."""
    member = job.workflow
    if member is None or not job.terminal:
        return None
    if job.state is State.COMPLETED:
        return StepOutcome("c", member.run, job.started_at)
    at = job.cancelled_at or job.discarded_at or 0
    if job.state is State.CANCELLED:
        error = StepError(
            node=member.node,
            run=member.run,
            step=member.step,
            type=job.type,
            code="cancelled",
            message="the job was cancelled",
            at=at,
        )
        return StepOutcome("x", member.run, job.started_at, error)
    told = job.error
    error = StepError(
        node=member.node,
        run=member.run,
        step=member.step,
        type=job.type,
        code=told.code if told is not None else "discarded",
        message=told.message[:500] if told is not None else "the job was discarded",
        attempt=job.attempt,
        at=at,
    )
    return StepOutcome("f", member.run, job.started_at, error)


def gone(node: int, run: int, now: int) -> StepOutcome:
    """A job that was there and has left before the workflow could see how it ended."""
    message = "the job's record is gone: it was deleted, or its retention ended"
    return StepOutcome("f", run, None, StepError(node=node, run=run, code="not_found", message=message, at=now))
