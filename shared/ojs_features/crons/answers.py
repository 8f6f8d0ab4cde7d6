"""Cron entries as clients read them (ojs-cron §8.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ojs_api import crons as contract
from ojs_api.crons import CronComing, CronHistory, CronPage, CronPreview, JobTemplate
from ojs_engine.domain.job import Job
from ojs_engine.wire.members import AnswerWarning, extended, moment, written
from ojs_engine.wire.pages import Page, pagination
from ojs_features.crons.record import Cron, CronRun


def cron_answer(cron: Cron) -> contract.Cron:
    """The entry as all answers have it."""
    draft = cron.draft
    answer = contract.Cron(
        name=cron.name,
        expression=cron.expression,
        timezone=cron.timezone,
        job_template=JobTemplate(
            type=draft.type, args=written(draft.args), options=written(cron.options), meta=written(draft.meta)
        ),
        overlap_policy=cron.overlap,
        enabled=cron.enabled,
        last_run_at=moment(cron.last_run_at),
        next_run_at=moment(cron.next_at),
        run_count=cron.run_count,
        created_at=moment(cron.created_at),
        updated_at=moment(cron.updated_at),
        waiting_runs=len(cron.waiting) or None,
        description=cron.description,
    )
    whole: contract.Cron = written(extended(answer, cron.extensions))
    return whole


def cron_preview(timezone: str, ticks: Sequence[int], said: Sequence[str]) -> CronPreview:
    """Make the answer about the ticks of an expression, and the remarks about it."""
    return CronPreview(timezone=timezone, runs=[moment(tick) for tick in ticks], warnings=remarked(said) or None)


def cron_coming(cron: Cron, ticks: Sequence[int], said: Sequence[str]) -> CronComing:
    """Make the answer about an entry's ticks to come, and the remarks about its expression."""
    runs = [moment(tick) for tick in ticks]
    return CronComing(timezone=cron.timezone, runs=runs, name=cron.name, warnings=remarked(said) or None)


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


def _execution(run: CronRun, jobs: Mapping[str, Job]) -> contract.CronRun:
    ran = run.outcome == "triggered"
    job = jobs.get(run.job_id) if ran and run.job_id is not None else None
    return contract.CronRun(
        number=run.n,
        status=run.outcome,
        scheduled_at=moment(run.tick),
        manual=bool(run.key),
        triggered_at=moment(run.at) if ran else None,
        job_id=run.job_id if ran else None,
        job_state=None if job is None else job.state,
        started_at=None if job is None else moment(job.started_at),
        completed_at=None if job is None else moment(job.completed_at),
        skipped_at=None if ran else moment(run.at),
        reason=None if ran else run.reason,
        occurrences=run.count if run.count > 1 and not ran else None,
        existing_job_id=None if ran else run.job_id,
    )
