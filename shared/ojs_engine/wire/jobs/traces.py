"""What a job went through, in short: its log and its failed attempts, as the official command line asks for them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.past import attempts_of
from ojs_engine.wire.jobs.retry import RetryPolicy, retry_policy
from ojs_engine.wire.members import Count, Timestamp, Uuid, given, timestamp


class JobPhase(Struct, kw_only=True, omit_defaults=True):
    """A state that a job was in, and how long. `error` says why."""

    phase: str
    state: State | None
    at: Timestamp
    duration: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class JobTrace(Struct):
    """A job's log: each state with its beginning and, once it is over, its length."""

    job_id: Uuid
    snapshots: list[JobPhase]


class JobHistoryEntry(Struct):
    """What happened to a job, and the state that it came to."""

    type: str
    state: State | None
    timestamp: Timestamp


class JobHistory(Struct):
    """A job's log as events."""

    job_id: Uuid
    events: list[JobHistoryEntry]


class FailedRun(Struct, kw_only=True, omit_defaults=True):
    """A failed attempt. `started_at` and `next_retry_at` are known while its transitions are logged."""

    attempt: Count
    state: Literal["failed", "retryable"]
    error: str
    code: str
    type: str
    failed_at: Timestamp
    started_at: Timestamp | UnsetType = UNSET
    next_retry_at: Timestamp | UnsetType = UNSET


class JobRetries(Struct):
    """A job's failed attempts, and the policy that says what follows."""

    job_id: Uuid
    retries: list[FailedRun]
    policy: RetryPolicy
    attempt: Count


def job_trace(job: Job) -> JobTrace:
    """The job's log by the states that it was in."""
    ends: list[int | None] = [*(entry.at for entry in job.transitions[1:]), None]
    snapshots = [
        JobPhase(
            phase=entry.event,
            state=entry.after,
            at=format_ms(entry.at),
            duration=UNSET if end is None else f"{(end - entry.at) / 1_000:g}s",
            error=given(entry.reason),
        )
        for entry, end in zip(job.transitions, ends, strict=True)
    ]
    return JobTrace(job.id, snapshots)


def job_history(job: Job) -> JobHistory:
    """The job's log by what happened."""
    events = [JobHistoryEntry(f"job.{entry.event}", entry.after, format_ms(entry.at)) for entry in job.transitions]
    return JobHistory(job.id, events)


def job_retries(job: Job) -> JobRetries:
    """The job's failed attempts; the last is `retryable` while another is to come."""
    starts = [attempt.started_at for attempt in attempts_of(job)]
    retries = [
        FailedRun(
            attempt=error.attempt,
            state="failed",
            error=error.message,
            code=error.code,
            type=error.type,
            failed_at=format_ms(error.at),
            started_at=timestamp(max((at for at in starts if at <= error.at), default=None)),
        )
        for error in job.errors
    ]
    if retries and job.state is State.RETRYABLE and job.next_attempt_at is not None:
        retries[-1].state = "retryable"
        retries[-1].next_retry_at = format_ms(job.next_attempt_at)
    return JobRetries(job.id, retries, retry_policy(job.retry), job.attempt)
