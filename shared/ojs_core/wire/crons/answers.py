"""Cron entries as clients read them (ojs-cron §8.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_core.base.times import format_ms
from ojs_core.domain.cron.record import Cron, CronRun, Overlap, RunOutcome, SkipReason
from ojs_core.domain.job import Job, State
from ojs_core.wire.members import (
    AnswerWarning,
    Count,
    Extended,
    JsonList,
    JsonObject,
    OpenStruct,
    Timestamp,
    Uuid,
    Warnings,
    extended,
    given,
    timestamp,
)
from ojs_core.wire.pages import Page, Pagination, pagination


class JobTemplate(Struct):
    """What each run enqueues. `options` has all that was asked of the job beside these members."""

    type: str
    args: JsonList
    options: JsonObject
    meta: JsonObject


class CronAnswer(OpenStruct, kw_only=True, omit_defaults=True):
    """A cron entry. `last_run_at` and `next_run_at` are null if there is none."""

    name: str
    expression: Annotated[str, Meta(description="As it was sent.")]
    timezone: str
    job_template: JobTemplate
    overlap_policy: Overlap
    enabled: bool
    last_run_at: Timestamp | None
    next_run_at: Timestamp | None
    run_count: Count
    created_at: Timestamp
    updated_at: Timestamp
    waiting_runs: Annotated[int, Meta(ge=1, description="Runs that wait for the one before them.")] | UnsetType = UNSET
    description: str | UnsetType = UNSET


CronView = CronAnswer | Extended[CronAnswer]


class OneCron(Struct):
    """The answer about one entry."""

    cron: CronView
    warnings: Warnings | UnsetType = UNSET


class DeletedCron(Struct):
    """An entry that is gone."""

    cron: CronView
    deleted: bool = True


class TriggeredCron(Struct):
    """A run by hand. The job exists, or will."""

    job_id: Uuid
    cron: CronView


class CronPreview(Struct):
    """When an expression fires next in a zone; fewer times than were asked for where the calendar ends before."""

    timezone: str
    runs: list[Timestamp]
    warnings: Warnings | UnsetType = UNSET


class CronComing(Struct):
    """When an entry runs next, or would if it weren't paused."""

    timezone: str
    runs: list[Timestamp]
    name: str
    warnings: Warnings | UnsetType = UNSET


class CronPage(Struct):
    """A page of the list of entries, `count` of them."""

    crons: list[CronView]
    count: Count
    pagination: Pagination


class CronExecution(Struct, kw_only=True, omit_defaults=True):
    """One occurrence. `job_state` is there as long as the job is."""

    number: Annotated[int, Meta(ge=1)]
    status: RunOutcome
    scheduled_at: Timestamp
    manual: bool
    triggered_at: Timestamp | UnsetType = UNSET
    job_id: Uuid | UnsetType = UNSET
    job_state: State | UnsetType = UNSET
    started_at: Timestamp | UnsetType = UNSET
    completed_at: Timestamp | UnsetType = UNSET
    skipped_at: Timestamp | UnsetType = UNSET
    reason: SkipReason | UnsetType = UNSET
    occurrences: Annotated[int, Meta(ge=2, description="How many it stands for.")] | UnsetType = UNSET
    existing_job_id: Annotated[Uuid, Meta(description="Of the job that was in the way.")] | UnsetType = UNSET


class CronHistory(Struct):
    """The last occurrences of an entry, newest first."""

    name: str
    executions: list[CronExecution]
    run_count: Count


def cron_answer(cron: Cron) -> CronView:
    """The entry as all answers have it."""
    draft = cron.draft
    answer = CronAnswer(
        name=cron.name,
        expression=cron.expression,
        timezone=cron.timezone,
        job_template=JobTemplate(draft.type, draft.args, cron.options, draft.meta),
        overlap_policy=cron.overlap,
        enabled=cron.enabled,
        last_run_at=None if cron.last_run_at is None else format_ms(cron.last_run_at),
        next_run_at=None if cron.next_at is None else format_ms(cron.next_at),
        run_count=cron.run_count,
        created_at=format_ms(cron.created_at),
        updated_at=format_ms(cron.updated_at),
        waiting_runs=len(cron.waiting) or UNSET,
        description=given(cron.description),
    )
    return extended(answer, cron.extensions)


def cron_preview(timezone: str, ticks: Sequence[int], said: Sequence[str]) -> CronPreview:
    """Make the answer about the ticks of an expression, and the remarks about it."""
    return CronPreview(timezone, [format_ms(tick) for tick in ticks], remarked(said) or UNSET)


def cron_coming(cron: Cron, ticks: Sequence[int], said: Sequence[str]) -> CronComing:
    """Make the answer about an entry's ticks to come, and the remarks about its expression."""
    return CronComing(cron.timezone, [format_ms(tick) for tick in ticks], cron.name, remarked(said) or UNSET)


def remarked(said: Sequence[str]) -> list[AnswerWarning]:
    """Return remarks about an expression as warnings."""
    return [AnswerWarning("expression", sentence) for sentence in said]


def cron_page(crons: Sequence[Cron], asked: Page) -> CronPage:
    """One page of entries that are sorted by name. The cursor is the last name of the page before."""
    start = asked.offset
    if asked.cursor is not None:
        start = sum(cron.name <= asked.cursor for cron in crons)
    here = crons[start : start + asked.limit]
    more = here[-1].name if start + asked.limit < len(crons) and here else None
    return CronPage([cron_answer(cron) for cron in here], len(here), pagination(asked, len(crons), more))


def cron_history(cron: Cron, jobs: Mapping[str, Job], limit: int) -> CronHistory:
    """The log, newest first; `jobs` are those that are still there."""
    return CronHistory(cron.name, [_execution(run, jobs) for run in cron.log[: -limit - 1 : -1]], cron.run_count)


def _execution(run: CronRun, jobs: Mapping[str, Job]) -> CronExecution:
    answer = CronExecution(number=run.n, status=run.outcome, scheduled_at=format_ms(run.tick), manual=bool(run.key))
    if run.outcome == "triggered":
        answer.triggered_at = format_ms(run.at)
        if run.job_id is not None:
            answer.job_id = run.job_id
            if (job := jobs.get(run.job_id)) is not None:
                answer.job_state = job.state
                answer.started_at = timestamp(job.started_at)
                answer.completed_at = timestamp(job.completed_at)
        return answer
    answer.skipped_at = format_ms(run.at)
    if run.reason is not None:
        answer.reason = run.reason
    if run.count > 1:
        answer.occurrences = run.count
    if run.job_id is not None:
        answer.existing_job_id = run.job_id
    return answer
