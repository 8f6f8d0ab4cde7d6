"""Results of jobs as clients read them."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from ojs_api.jobs import JobError
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions.retention import result_expires_at
from ojs_engine.wire.jobs.job import failed_attempt
from ojs_engine.wire.members import Timestamp

NO_RESULT: Final = Raw(b"null")


class JobResult(Struct, kw_only=True, omit_defaults=True):
    """`result` is null while, or because, there is none."""

    job_id: str
    state: State | Literal["not_found"]
    result: Raw
    completed_at: Timestamp | UnsetType = UNSET
    error: JobError | UnsetType = UNSET


class JobResults(Struct):
    """By id as sent; `state` is `not_found` where there is no such job."""

    results: dict[str, JobResult]


def job_result(job: Job) -> JobResult:
    """What a client that asks for a result gets."""
    answer = JobResult(job_id=job.id, state=job.state, result=job.result or NO_RESULT)
    if job.completed_at is not None:
        answer.completed_at = format_ms(job.completed_at)
    if job.error is not None:
        answer.error = failed_attempt(job.error)
    return answer


def without_expired_result(job: Job, now: int) -> Job:
    """The job without a result whose time (`result_ttl`) is over, though its record is still there."""
    expires_at = result_expires_at(job)
    if expires_at is None or expires_at > now:
        return job
    return replace(job, result=NOTHING, result_blob=None, result_stored_at=None)
