"""The cron record: what is stored under `cron.<name>`, and nothing else about it. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct

from ojs_api.crons import RunOutcome, SkipReason
from ojs_api.words import Overlap
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.job import EMPTY_OBJECT, Job
from ojs_features.crons.schedule import Gap

KEPT: Final = 50


class CronTimer(Struct, frozen=True):
    """The one live timer of an entry: subject `ojs.timer.cron.<name>.<op>`, due at `at`."""

    op: str
    at: At


class Occurrence(Struct, frozen=True, omit_defaults=True):
    """A time at which a job is wanted. `key` is empty for a tick of the schedule, and a fresh word for a run by hand."""

    at: At
    key: str = ""


class CronRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One occurrence in the entry's log. `n` counts from 1; `tick` is when it was due, `at` when it was dealt with."""

    n: Whole
    outcome: RunOutcome
    tick: At
    at: At
    key: str = ""
    hint: str | None = None
    """The op of the due message that stays until the job of this run exists."""
    job_id: str | None = None
    """The job that the run creates; of a skipped one, the job that was in the way."""
    cancels: str | None = None
    """The job that gives way to this run's."""
    reason: SkipReason | None = None
    count: Whole = 1
    """Occurrences that this entry stands for: a gap in the clock swallows several."""
    number: Whole = 0
    """`run_count` after a triggered run."""


class Cron(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The truth about one entry; replaced as a whole by compare-and-swap."""

    name: str
    expression: str
    """The expression as it was sent: `@daily` stays `@daily`."""
    timezone: str = "UTC"
    draft: Job
    """The job that each run pushes. Relative times of the template (`+PT5S`) are kept as milliseconds from the run."""
    options: Raw = EMPTY_OBJECT
    """The members of the job but its type, args and meta, as they were sent."""
    overlap: Overlap = "skip"
    enabled: bool = True
    description: str | None = None
    extensions: Extensions = {}
    """The entry's own; its jobs have them as well."""
    key: str | None = None
    """The id of the key that registered or changed it last; None where none was needed, or it wasn't noted."""
    created_at: At
    updated_at: At
    anchor: At
    """The moment that `@every` counts from."""

    op: str
    """The change that made this revision."""
    next_at: At | None = None
    gap: Gap | None = None
    """Occurrences before `next_at` that will be reported as skipped, because their time doesn't exist."""
    timer: CronTimer | None = None
    waiting: tuple[Occurrence, ...] = ()
    """Occurrences that wait for the end of the job before them (`enqueue`), oldest first."""
    last_job: str | None = None
    last_run_at: At | None = None
    run_count: Whole = 0
    n: Whole = 0
    """Number of the newest entry in the log; goes on when the log is cut."""
    log: tuple[CronRun, ...] = ()
    """The last 50 occurrences, oldest first."""
    deleted: bool = False
    """A tombstone: the entry is gone, but jobs of runs in its log may still have to be created."""
