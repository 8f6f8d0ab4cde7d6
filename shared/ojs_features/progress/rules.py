"""Rules of progress: how far an attempt of a job has come, as its worker says (ojs-progress, docs/adr/020)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions.result import Moment

Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]


class Report(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker says: from 0 to 1 how much is done, and whatever else it has to tell, a JSON object."""

    fraction: Fraction | None = None
    message: str | None = None
    data: Raw = NOTHING


class ProgressRecord(Report, frozen=True, kw_only=True, omit_defaults=True):
    """The last report of an attempt: at what time (Unix ms), and the word of the moment in which that was noted."""

    job_id: str
    attempt: Whole
    at: At
    op: str


def reported(old: ProgressRecord | None, job: Job, report: Report, moment: Moment) -> ProgressRecord | None:
    """Return the progress after a report about an active job; None if it changes nothing.

    A fraction never falls within an attempt: a report with a lower one is passed over as a whole (ojs-progress §5.1). One
    without a fraction leaves it as it is.
    """
    before = of_attempt(old, job)
    fraction = report.fraction
    if before is not None and before.fraction is not None:
        if fraction is None:
            fraction = before.fraction
        elif fraction < before.fraction:
            return None
    return ProgressRecord(
        fraction=fraction,
        message=report.message,
        data=report.data,
        job_id=job.id,
        attempt=job.attempt,
        at=moment.now,
        op=moment.op,
    )


def of_attempt(progress: ProgressRecord | None, job: Job) -> ProgressRecord | None:
    """Return a record if it is about the job's present, or last, attempt: each begins without progress (§5.3)."""
    if progress is None or progress.attempt != job.attempt or progress.at < (job.started_at or 0):
        return None
    return progress


def standing(progress: ProgressRecord | None, job: Job) -> ProgressRecord | None:
    """Return the progress of a job: all is done of one that is completed and has told of its progress (§8.1)."""
    found = of_attempt(progress, job)
    if found is None or job.state is not State.COMPLETED:
        return found
    return replace(found, fraction=1.0, at=max(found.at, job.completed_at or 0))
