"""Lists of jobs, and one job in detail, as clients read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ojs_api.jobs import AdminJobPage, JobPage, PlannedTransition, TimelineEntry
from ojs_api.jobs import JobError as ErrorAnswer
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Entry, Job, JobError
from ojs_engine.domain.past import stack_trace
from ojs_engine.domain.transitions.retention import retention_s
from ojs_engine.wire.jobs.job import failed_attempt, job_members, job_view, shown_job
from ojs_engine.wire.members import moment
from ojs_engine.wire.pages import Page, pagination
from ojs_index.asking.messages import Answer
from ojs_index.lists.progress import progress


class BareJobDetail(Struct):
    """A job in detail, whose members the admin API does not wrap."""

    job: Any


def job_page(jobs: Sequence[Job], answer: Answer, asked: Page, total: int | None, next_cursor: str | None) -> JobPage:
    """Return a list of whole jobs; `answer` is what the index said."""
    place = pagination(asked, total, next_cursor)
    return JobPage(jobs=[job_view(job) for job in jobs], pagination=place, **progress(answer))


def admin_job_page(page: JobPage) -> AdminJobPage:
    """Return the same in the admin API."""
    return AdminJobPage(items=page.jobs, pagination=page.pagination, partial=page.partial, index_progress=page.index_progress)


def job_detail(job: Job) -> Any:
    """Return a job in detail (ojs-admin-api §7.2), in its written form. `errors` is always a list."""
    ended_at = job.completed_at or job.cancelled_at or job.discarded_at
    kept_s = retention_s(job) if job.terminal else None
    answer = job_members(job) | {
        "errors": tuple(_with_lines(error) for error in job.errors),
        "timeline": tuple(_entry(entry) for entry in job.transitions),
        "timers": () if job.timer is None else (PlannedTransition(due_at=moment(job.timer.at), service=job.timer.service),),
        "dead_letter": job.dead_letter,
    }
    if job.visible_until is not None:
        answer["visible_until"] = format_ms(job.visible_until)
    if ended_at is not None and kept_s is not None:
        answer["leaves_at"] = format_ms(ended_at + kept_s * 1_000)
    return shown_job(answer, job)


def _entry(entry: Entry) -> TimelineEntry:
    return TimelineEntry(
        number=entry.n,
        event=entry.event,
        at=moment(entry.at),
        attempt=entry.attempt,
        before=entry.before or None,
        to=entry.after or None,
        worker_id=entry.worker or None,
        reason=entry.reason,
    )


def _with_lines(error: JobError) -> ErrorAnswer:
    """Return a failed attempt with its backtrace as a list of lines."""
    view = failed_attempt(error)
    trace = stack_trace(error.backtrace)
    return view if trace is None else replace(view, backtrace=trace.split("\n"))
