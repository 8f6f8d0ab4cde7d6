"""A job as clients read it."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from ojs_api import jobs as contract
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Job, JobError, State
from ojs_engine.domain.members import PLAIN
from ojs_engine.domain.transitions import DEFAULT_LEASE_MS, DEFAULT_TIMEOUT_MS
from ojs_engine.domain.transitions.retention import result_expires_at
from ojs_engine.wire.jobs.enqueue import SPECVERSION
from ojs_engine.wire.jobs.retry import retry_policy, retry_raw
from ojs_engine.wire.members import encode, extended, moment, seconds, written


def job_view(job: Job, *, previous_state: State | None = None) -> Any:
    """Return a job with all that there is to say about it, in its written form."""
    answer = job_members(job)
    if previous_state is not None:
        answer["previous_state"] = previous_state
    return shown_job(answer, job)


def shown_job(answer: dict[str, Any], job: Job) -> Any:
    """Return the members of a job, in their written form, with those that the client has added.

    Those of OJS go ahead where both have a name. No struct is made of them: it would take as long as all the rest.
    """
    return job.extra | answer if job.extra else answer


def job_members(job: Job) -> dict[str, Any]:
    """Return the members that OJS defines, in their written form."""
    answer: dict[str, Any] = {
        "specversion": SPECVERSION,
        "id": job.id,
        "type": job.type,
        "state": job.state,
        "queue": job.queue,
        "args": job.args,
        "meta": job.meta,
        "priority": job.priority,
        "tags": job.tags,
        "attempt": job.attempt,
        "max_attempts": job.retry.max_attempts,
        "timeout_ms": job.timeout_ms or DEFAULT_TIMEOUT_MS,
        "visibility_timeout_ms": job.visibility_timeout_ms or DEFAULT_LEASE_MS,
        "retry": _retry_of(job),
        "created_at": format_ms(job.created_at),
    }
    for name, field in PLAIN:
        if (value := getattr(job, field)) is not None:
            answer[name] = value
    if job.enqueued_at is not None:
        answer["enqueued_at"] = format_ms(job.enqueued_at)
    if job.scheduled_at is not None:
        answer["scheduled_at"] = job.verbatim.get("scheduled_at") or format_ms(job.scheduled_at)
    if job.expires_at is not None:
        answer["expires_at"] = job.verbatim.get("expires_at") or format_ms(job.expires_at)
    if job.uncharged:
        answer["uncounted_attempts"] = job.uncharged
    if job.activated_at is not None:
        answer["activated_at"] = format_ms(job.activated_at)
    if job.re_enqueued_at is not None:
        answer["re_enqueued_at"] = format_ms(job.re_enqueued_at)
    _add_history(answer, job)
    if job.workflow is not None:
        answer["workflow_id"] = job.workflow.id
        answer["workflow_step"] = job.workflow.index
        answer["workflow_step_id"] = job.workflow.step
    _add_requests(answer, job)
    return answer


def _retry_of(job: Job) -> Raw:
    """The effective policy, with the members of extensions that were sent in it."""
    if not job.retry_extensions:
        return retry_raw(job.retry)
    return Raw(encode(extended(retry_policy(job.retry), job.retry_extensions)))


def _add_history(answer: dict[str, Any], job: Job) -> None:
    if job.started_at is not None:
        answer["started_at"] = format_ms(job.started_at)
    if job.completed_at is not None:
        answer["completed_at"] = format_ms(job.completed_at)
    if job.cancelled_at is not None:
        answer["cancelled_at"] = format_ms(job.cancelled_at)
    if job.discarded_at is not None:
        answer["discarded_at"] = format_ms(job.discarded_at)
    if job.next_attempt_at is not None:
        answer["next_attempt_at"] = format_ms(job.next_attempt_at)
    if job.retry_delay_ms is not None:
        answer["retry_delay_ms"] = job.retry_delay_ms
    if job.worker is not None:
        answer["worker_id"] = job.worker
    kept = bool(job.result) or job.result_blob is not None
    if job.result:
        answer["result"] = job.result
    if kept:
        answer["result_size_bytes"] = job.result_bytes or 0
    if job.result_stored_at is not None:
        answer["result_stored_at"] = format_ms(job.result_stored_at)
    expires_at = result_expires_at(job) if kept else None
    if expires_at is not None:
        answer["result_expires_at"] = format_ms(expires_at)
    if job.error is not None:
        answer["error"] = failed_attempt(job.error)
    if job.errors:
        answer["errors"] = [failed_attempt(error) for error in job.errors]


def _add_requests(answer: dict[str, Any], job: Job) -> None:
    if job.timeout_in_seconds and job.timeout_ms is not None:
        answer["timeout"] = seconds(job.timeout_ms)
    if job.total_timeout_ms is not None:
        answer["total_timeout"] = seconds(job.total_timeout_ms)
    if job.enqueue_ttl_ms is not None:
        answer["enqueue_ttl"] = seconds(job.enqueue_ttl_ms)
    if job.heartbeat_timeout_ms is not None:
        answer["heartbeat_timeout"] = seconds(job.heartbeat_timeout_ms)
    if job.grace_period_ms is not None:
        answer["grace_period"] = seconds(job.grace_period_ms)
    if job.result_ttl_s is not None:
        answer["result_ttl"] = job.result_ttl_s
    if job.result_size_limit is not None:
        answer["result_size_limit"] = job.result_size_limit
    if job.schema is not None:
        answer["schema"] = job.schema
    if job.version is not None:
        answer["version"] = job.version
    if job.unique:
        answer["unique"] = job.unique
    if job.rate_limit:
        answer["rate_limit"] = job.rate_limit
    if job.metadata:
        answer["metadata"] = job.metadata


def failed_attempt(error: JobError) -> contract.JobError:
    """Return one failed attempt as clients read it."""
    return contract.JobError(
        message=error.message,
        code=error.code,
        type=error.type,
        attempt=error.attempt,
        details=written(error.details or None),
        backtrace=written(error.backtrace or None),
        occurred_at=moment(error.at),
        retryable=error.retryable,
        retry_generation=error.generation or None,
    )
