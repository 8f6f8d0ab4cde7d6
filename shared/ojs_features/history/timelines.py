"""What a job went through, in short: its log and its failed attempts, as the official command line asks for them."""

from __future__ import annotations

from msgspec.structs import replace

from ojs_api.history import FailedAttempt, JobHistory, JobHistoryEntry, JobPhase, JobRetries, JobTrace
from ojs_engine.domain.job import Job, State
from ojs_engine.wire.jobs.retry import retry_policy
from ojs_engine.wire.members import moment
from ojs_features.history.attempts import attempts_of


def job_trace(job: Job) -> JobTrace:
    """Return the job's log by the states that it was in."""
    ends: list[int | None] = [*(entry.at for entry in job.transitions[1:]), None]
    snapshots = [
        JobPhase(
            phase=entry.event,
            state=entry.after,
            at=moment(entry.at),
            duration=None if end is None else f"{(end - entry.at) / 1_000:g}s",
            error=entry.reason,
        )
        for entry, end in zip(job.transitions, ends, strict=True)
    ]
    return JobTrace(job_id=job.id, snapshots=snapshots)


def job_history(job: Job) -> JobHistory:
    """Return the job's log by what happened."""
    events = [
        JobHistoryEntry(type=f"job.{entry.event}", state=entry.after, timestamp=moment(entry.at)) for entry in job.transitions
    ]
    return JobHistory(job_id=job.id, events=events)


def job_retries(job: Job) -> JobRetries:
    """Return the job's failed attempts; the last is `retryable` while another is to come."""
    starts = [attempt.started_at for attempt in attempts_of(job)]
    retries = [
        FailedAttempt(
            attempt=error.attempt,
            state="failed",
            error=error.message,
            code=error.code,
            type=error.type,
            failed_at=moment(error.at),
            started_at=moment(max((at for at in starts if at <= error.at), default=None)),
        )
        for error in job.errors
    ]
    if retries and job.state is State.RETRYABLE and job.next_attempt_at is not None:
        retries[-1] = replace(retries[-1], state="retryable", next_retry_at=moment(job.next_attempt_at))
    return JobRetries(job_id=job.id, retries=retries, policy=retry_policy(job.retry), attempt=job.attempt)
