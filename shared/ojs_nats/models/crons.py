"""Cron entries and their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class JobTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """What each run enqueues. `options` has all that was asked of the job beside these members."""

    type: str
    args: list[Any]
    options: dict[str, Any]
    meta: dict[str, Any]


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """A cron entry. `last_run_at` and `next_run_at` are null if there is none."""

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
    """One occurrence. `job_state` is there as long as the job is."""

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
    """The last occurrences of an entry, newest first."""

    name: str
    executions: list[CronRun]
    run_count: int


class TriggeredCron(msgspec.Struct, frozen=True, kw_only=True):
    """A run by hand. The job exists, or will."""

    job_id: str
    cron: Cron
