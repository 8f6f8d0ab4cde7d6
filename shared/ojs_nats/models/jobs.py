"""What is told of jobs beside the jobs themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ojs_nats.jobs import Job, JobError
from ojs_nats.models.queues import RetryPolicy


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One transition: who, when, why."""

    number: int
    event: str
    at: datetime
    attempt: int
    before: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    worker_id: str | None = None
    reason: str | None = None


class PlannedTransition(msgspec.Struct, frozen=True, kw_only=True):
    """What will happen by itself, and which service sees to it."""

    due_at: datetime
    service: str


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One reason: a code that stays, a sentence, and what can be done about it."""

    code: str
    message: str
    remedy: str | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job is in its state, what matters most first."""

    job_id: str
    state: str
    reasons: list[Reason]


class JobDetail(Job, frozen=True, kw_only=True):
    """A job with what happened to it, and what will happen by itself."""

    timeline: list[TimelineEntry] = msgspec.field(default_factory=list)
    timers: list[PlannedTransition] = msgspec.field(default_factory=list)
    dead_letter: bool = False
    visible_until: datetime | None = None
    leaves_at: datetime | None = None


class ChangedPriority(msgspec.Struct, frozen=True, kw_only=True):
    """The job's priority now, and what it was (ojs-priority §8.1)."""

    id: str
    priority: int
    previous_priority: int


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job has come; nulls if its attempt has told of nothing (ojs-progress §7.1)."""

    job_id: str
    state: str
    attempt: int
    progress: float | None
    data: dict[str, Any] | None
    updated_at: datetime | None
    percentage: float | None = None
    message: str | None = None


class ReportedProgress(Progress, frozen=True, kw_only=True):
    """What stands after a report."""

    accepted: bool


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who did it; `id` is a worker's."""

    type: str
    id: str | None = None


class HistoryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a job's history."""

    id: str
    job_id: str
    event_type: str
    timestamp: datetime
    data: dict[str, Any]
    actor: Actor | None = None


class JobLineage(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job comes from: what its client said of parent and root, and the workflow that it is part of."""

    job_id: str
    parent_id: str | None = None
    root_id: str | None = None
    workflow_id: str | None = None
    workflow_step: str | None = None


class AttemptError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt failed."""

    code: str
    type: str
    message: str


class AttemptTrace(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. `outcome` is the word of the job's log for what ended it, `state` the one that it led to."""

    attempt: int
    started_at: datetime
    worker_id: str | None = None
    ended_at: datetime | None = None
    duration_ms: int | None = None
    outcome: str | None = None
    state: str | None = None
    error: AttemptError | None = None
    retry_generation: int | None = None


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A failed attempt. `started_at` and `next_retry_at` are known while its transitions are logged."""

    attempt: int
    state: str
    error: str
    code: str
    type: str
    failed_at: datetime
    started_at: datetime | None = None
    next_retry_at: datetime | None = None


class JobRetries(msgspec.Struct, frozen=True, kw_only=True):
    """A job's failed attempts, and the policy that says what follows; `attempt` is the number of the last one."""

    job_id: str
    retries: list[FailedAttempt]
    policy: RetryPolicy
    attempt: int


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """`result` is null while, or because, there is none."""

    job_id: str
    state: str
    result: Any
    completed_at: datetime | None = None
    error: JobError | None = None


class UniqueJob(msgspec.Struct, frozen=True, kw_only=True):
    """A fingerprint and the job that holds it."""

    key: str
    job_id: str
    type: str
    queue: str
    state: str


class SkippedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was left as it is, and why."""

    job_id: str
    error: str


class ItemError(msgspec.Struct, frozen=True, kw_only=True):
    """Why one item of a request was refused."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] = {}
    canonical_code: str | None = None


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A job in short; of one that was in the way, what is known of it."""

    id: str
    state: str
    type: str | None = None
    queue: str | None = None
    priority: int | None = None
    created_at: datetime | None = None
    scheduled_at: datetime | None = None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken although something is not as it should be: the member of the request, and what about it."""

    field: str
    message: str


class PushedItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job of the request."""

    index: int
    status: str
    job: JobSummary | None = None
    error: ItemError | None = None
    warnings: list[Notice] = []


class BulkPushed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each job (ojs-bulk-operations §5.2)."""

    total: int
    succeeded: int
    failed: int
    items: list[PushedItem]


class ChangedItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job that was named or found. One that was skipped says why."""

    index: int
    job_id: str
    status: str
    reason: str | None = None
    error: ItemError | None = None


class ChangedSelection(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs that were named, or of a page of those that fit a filter: `next_cursor` leads to the next."""

    total_matched: int
    skipped: int
    failed: int
    items: list[ChangedItem]
    has_more: bool = False
    next_cursor: str | None = None
    remaining: int | None = None
    dry_run: bool = False


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failed attempt of some job."""

    job_id: str
    job_type: str
    queue: str
    attempt: int
    error: AttemptError
    failed_at: datetime
    state: str | None = None
    worker_id: str | None = None
    duration_ms: int | None = None
    trace_id: str | None = None
