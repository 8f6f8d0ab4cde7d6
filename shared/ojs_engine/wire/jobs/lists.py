"""Lists of jobs, and one job in detail, as clients read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from ojs_api import jobs as contract
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Entry, Job, JobError, State
from ojs_engine.domain.past import stack_trace
from ojs_engine.domain.transitions.retention import retention_s
from ojs_engine.read.messages import Answer
from ojs_engine.wire.jobs.job import JobAnswer, JobView, failed_attempt, job_answer, job_view, with_extra
from ojs_engine.wire.members import Count, Extended, Timestamp, given, members, timestamp
from ojs_engine.wire.pages import Indexed, Page, Pagination, pagination, with_progress


class JobPage(Indexed, kw_only=True):
    """A page of a list of jobs."""

    jobs: list[JobView]
    pagination: Pagination


class AdminJobPage(Indexed, kw_only=True):
    """A page of a list of jobs, as the admin API calls it."""

    items: list[JobView]
    pagination: Pagination


class TimelineEntry(Struct, kw_only=True, omit_defaults=True, rename={"before": "from", "after": "to"}):
    """One transition: who, when, why."""

    number: Annotated[int, Meta(ge=1)]
    event: str
    at: Timestamp
    attempt: Count
    before: State | UnsetType = UNSET
    after: State | UnsetType = UNSET
    worker_id: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class PlannedTransition(Struct):
    """What will happen by itself, and which service sees to it."""

    due_at: Timestamp
    service: str


class JobDetail(JobAnswer, kw_only=True):
    """A job with what happened to it and what will happen by itself. Backtraces are lists of lines."""

    timeline: Annotated[list[TimelineEntry], Meta(description="Its last transitions, oldest first.")]
    timers: Annotated[list[PlannedTransition], Meta(description="What will happen by itself.")]
    dead_letter: bool
    visible_until: Timestamp | UnsetType = UNSET
    leaves_at: Annotated[Timestamp, Meta(description="When the record of a finished job leaves.")] | UnsetType = UNSET


class OneJobDetail(Struct):
    """The answer about one dead letter."""

    job: JobDetail | Extended[JobDetail]


class BareJobDetail(Struct):
    """The same about any job, whose members the admin API does not wrap."""

    job: JobDetail | Extended[JobDetail]


def job_page(jobs: Sequence[Job], answer: Answer, asked: Page, total: int | None, next_cursor: str | None) -> JobPage:
    """A list of whole jobs; `answer` is what the index said."""
    page = JobPage(jobs=[job_view(job) for job in jobs], pagination=pagination(asked, total, next_cursor))
    return with_progress(page, answer)


def admin_job_page(page: JobPage) -> AdminJobPage:
    """The same in the admin API."""
    return AdminJobPage(items=page.jobs, pagination=page.pagination, partial=page.partial, index_progress=page.index_progress)


def job_detail(job: Job) -> JobDetail | Extended[JobDetail]:
    """Return a job in detail (ojs-admin-api §7.2). `errors` is always a list."""
    ended_at = job.completed_at or job.cancelled_at or job.discarded_at
    kept_s = retention_s(job) if job.terminal else None
    detail = JobDetail(
        **members(job_answer(job)),
        timeline=[_entry(entry) for entry in job.transitions],
        timers=[] if job.timer is None else [PlannedTransition(format_ms(job.timer.at), job.timer.service)],
        dead_letter=job.dead_letter,
        visible_until=timestamp(job.visible_until),
        leaves_at=UNSET if ended_at is None or kept_s is None else format_ms(ended_at + kept_s * 1_000),
    )
    detail.errors = [_with_lines(error) for error in job.errors]
    return with_extra(detail, job)


def _entry(entry: Entry) -> TimelineEntry:
    return TimelineEntry(
        number=entry.n,
        event=entry.event,
        at=format_ms(entry.at),
        attempt=entry.attempt,
        before=entry.before or UNSET,
        after=entry.after or UNSET,
        worker_id=entry.worker or UNSET,
        reason=given(entry.reason),
    )


def _with_lines(error: JobError) -> contract.JobError:
    """A failed attempt with its backtrace as a list of lines."""
    view = failed_attempt(error)
    trace = stack_trace(error.backtrace)
    return view if trace is None else replace(view, backtrace=trace.split("\n"))
