"""Answers about jobs: explanations, histories, attempts, results, outcomes of changes. `ojs_nats.jobs.Job` is the job
itself.
"""

from __future__ import annotations

from ojs_api.bulk import BulkPushed, ChangedItem, ChangedSelection, JobSummary, PushedItem
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
from ojs_api.members import AnswerWarning, ItemError
from ojs_api.progress import Progress, ReportedProgress
from ojs_api.unique import UniqueJob

__all__ = [
    "Actor",
    "AnswerWarning",
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
    "PlannedTransition",
    "Progress",
    "PushedItem",
    "Reason",
    "ReportedProgress",
    "SkippedJob",
    "TimelineEntry",
    "UniqueJob",
]
