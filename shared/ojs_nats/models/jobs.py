"""Answers about jobs: explanations, histories, attempts, results, outcomes of changes. `ojs_nats.jobs.Job` is the job
itself.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_api.findings import Explanation, Reason
from ojs_api.history import (
    Actor,
    AttemptError,
    AttemptTrace,
    FailedAttempt,
    Failure,
    HistoryEvent,
    JobLineage,
    JobRetries,
)
from ojs_api.jobs import ChangedPriority, JobDetail, JobResult, PlannedTransition, SkippedJob, TimelineEntry
from ojs_api.members import ItemError
from ojs_api.progress import Progress, ReportedProgress
from ojs_api.unique import UniqueJob

__all__ = [
    "Actor",
    "AttemptError",
    "AttemptTrace",
    "BulkPushed",
    "ChangedItem",
    "ChangedPriority",
    "ChangedSelection",
    "Explanation",
    "FailedAttempt",
    "Failure",
    "HistoryEvent",
    "ItemError",
    "JobDetail",
    "JobLineage",
    "JobResult",
    "JobRetries",
    "JobSummary",
    "Notice",
    "PlannedTransition",
    "Progress",
    "PushedItem",
    "Reason",
    "ReportedProgress",
    "SkippedJob",
    "TimelineEntry",
    "UniqueJob",
]


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A job in short."""

    id: str
    state: str
    type: str | None = None
    queue: str | None = None
    priority: int | None = None
    created_at: datetime | None = None
    scheduled_at: datetime | None = None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A warning about a request that was accepted.

    Attributes:
        field: The member of the request.
    """

    field: str
    message: str


class PushedItem(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one job of a push of several.

    Attributes:
        index: The job's position in the request, from 0.
    """

    index: int
    status: str
    job: JobSummary | None = None
    error: ItemError | None = None
    warnings: list[Notice] = []


class BulkPushed(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of a push of several jobs (ojs-bulk-operations §5.2)."""

    total: int
    succeeded: int
    failed: int
    items: list[PushedItem]


class ChangedItem(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a change for one job.

    Attributes:
        index: The job's position in the request or page, from 0.
        reason: Why it was skipped.
    """

    index: int
    job_id: str
    status: str
    reason: str | None = None
    error: ItemError | None = None


class ChangedSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a change of many jobs, or of one page of them.

    Attributes:
        total_matched: How many jobs match.
        next_cursor: Where the next request goes on. None if this was the last.
        remaining: How many jobs are left. None if the server didn't count.
    """

    total_matched: int
    skipped: int
    failed: int
    items: list[ChangedItem]
    has_more: bool = False
    next_cursor: str | None = None
    remaining: int | None = None
    dry_run: bool = False
