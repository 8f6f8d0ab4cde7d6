"""Results of jobs as clients read them."""

from __future__ import annotations

from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from ojs_api.jobs import JobResult
from ojs_engine.domain.job import NOTHING, Job
from ojs_engine.domain.transitions.retention import result_expires_at
from ojs_engine.wire.jobs.job import failed_attempt
from ojs_engine.wire.members import moment, written

NO_RESULT: Final = Raw(b"null")


def job_result(job: Job) -> JobResult:
    """Return what a client that asks for a result gets."""
    return JobResult(
        job_id=job.id,
        state=job.state,
        result=written(job.result or NO_RESULT),
        completed_at=moment(job.completed_at),
        error=None if job.error is None else failed_attempt(job.error),
    )


def without_expired_result(job: Job, now: int) -> Job:
    """The job without a result whose time (`result_ttl`) is over, though its record is still there."""
    expires_at = result_expires_at(job)
    if expires_at is None or expires_at > now:
        return job
    return replace(job, result=NOTHING, result_blob=None, result_stored_at=None)
