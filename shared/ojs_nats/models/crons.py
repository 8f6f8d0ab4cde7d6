"""Cron entries and their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = ["Cron", "CronHistory", "CronRun", "JobTemplate", "TriggeredCron"]


class JobTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """The job that a cron entry pushes with each run.

    Attributes:
        options: The job's options besides these members.
    """

    type: str
    args: list[Any]
    options: dict[str, Any]
    meta: dict[str, Any]


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """A cron entry.

    Attributes:
        last_run_at: When it ran last. None before the first run.
        next_run_at: When it runs next. None if it doesn't.
        run_count: How many times it has run.
        waiting_runs: How many runs wait for the end of the last one.
    """

    name: str
    expression: str
    timezone: str
    job_template: JobTemplate
    overlap_policy: str
    enabled: bool
    last_run_at: datetime | None
    next_run_at: datetime | None
    run_count: int
    created_at: datetime
    updated_at: datetime
    waiting_runs: int | None = None
    description: str | None = None


class CronRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a cron entry.

    Attributes:
        number: The number of the run, from 1.
        status: What came of it: whether a job was pushed, or why not.
        manual: Whether somebody triggered it.
        job_state: The state of its job, for as long as the job is stored.
        occurrences: How many times of the schedule this run stands for.
    """

    number: int
    status: str
    scheduled_at: datetime
    manual: bool
    triggered_at: datetime | None = None
    job_id: str | None = None
    job_state: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    skipped_at: datetime | None = None
    reason: str | None = None
    occurrences: int | None = None
    existing_job_id: str | None = None


class CronHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of a cron entry, the newest first."""

    name: str
    executions: list[CronRun]
    run_count: int


class TriggeredCron(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was triggered by hand. Its job exists, or will in a moment."""

    job_id: str
    cron: Cron
