"""A job as clients read it."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_api import jobs as contract
from ojs_engine.base.numbers import Priority
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Job, JobError, State
from ojs_engine.domain.transitions import DEFAULT_LEASE_MS, DEFAULT_TIMEOUT_MS
from ojs_engine.domain.transitions.retention import result_expires_at
from ojs_engine.wire.jobs.enqueue import SPECVERSION
from ojs_engine.wire.jobs.retry import retry_policy, retry_raw
from ojs_engine.wire.members import (
    Count,
    Extended,
    JsonList,
    JsonObject,
    OpenStruct,
    Seconds,
    Timestamp,
    Uuid,
    Warnings,
    encode,
    extended,
    members,
    moment,
    seconds,
    written,
)


class JobCheckpoint(OpenStruct, kw_only=True, omit_defaults=True):
    """What an attempt goes on from (ojs-durable-execution §6.1)."""

    state: Annotated[Raw, Meta(description="Any JSON.")]
    sequence: Annotated[int, Meta(ge=1)]
    created_at: Timestamp
    step_index: int | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class JobAnswer(OpenStruct, kw_only=True, omit_defaults=True):
    """A job. Members that a client has added come back as they were sent."""

    specversion: str
    id: Uuid
    type: str
    state: State
    queue: str
    args: JsonList
    meta: JsonObject
    priority: Priority
    tags: tuple[str, ...]
    attempt: Count
    max_attempts: Count
    timeout_ms: Annotated[int, Meta(ge=1)]
    visibility_timeout_ms: Annotated[int, Meta(ge=1)]
    retry: Annotated[Raw, contract.RetryPolicy]
    created_at: Timestamp

    enqueued_at: Timestamp | UnsetType = UNSET
    scheduled_at: Timestamp | UnsetType = UNSET
    expires_at: Timestamp | UnsetType = UNSET
    started_at: Timestamp | UnsetType = UNSET
    completed_at: Timestamp | UnsetType = UNSET
    cancelled_at: Timestamp | UnsetType = UNSET
    discarded_at: Timestamp | UnsetType = UNSET
    activated_at: Timestamp | UnsetType = UNSET
    re_enqueued_at: Timestamp | UnsetType = UNSET
    next_attempt_at: Timestamp | UnsetType = UNSET
    retry_delay_ms: Count | UnsetType = UNSET
    uncounted_attempts: (
        Annotated[Count, Meta(description="How many of `attempt` don't count against `max_attempts`: those handed back.")]
        | UnsetType
    ) = UNSET
    worker_id: Annotated[str, Meta(description="Who holds it, or held it last.")] | UnsetType = UNSET
    result: (
        Annotated[Raw, Meta(description="Lists leave out what is large, or has a `result_ttl` that ends before its job does.")]
        | UnsetType
    ) = UNSET
    result_size_bytes: Count | UnsetType = UNSET
    result_stored_at: Timestamp | UnsetType = UNSET
    result_expires_at: Timestamp | UnsetType = UNSET
    error: contract.JobError | UnsetType = UNSET
    errors: Annotated[list[contract.JobError], Meta(description="The failed attempts, oldest first.")] | UnsetType = UNSET

    timeout: Seconds | UnsetType = UNSET
    total_timeout: Seconds | UnsetType = UNSET
    enqueue_ttl: Seconds | UnsetType = UNSET
    heartbeat_timeout: Seconds | UnsetType = UNSET
    grace_period: Seconds | UnsetType = UNSET
    result_ttl: (
        Annotated[int, Meta(ge=-1, description="Seconds; 0 keeps none, -1 keeps it and its job for ever.")] | UnsetType
    ) = UNSET
    result_size_limit: Annotated[int, Meta(ge=1, description="Bytes.")] | UnsetType = UNSET
    schema: str | UnsetType = UNSET
    version: Annotated[int | str, Meta(description="Of its type, as it was sent.")] | UnsetType = UNSET
    unique: JsonObject | UnsetType = UNSET
    rate_limit: JsonObject | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    workflow_id: Uuid | UnsetType = UNSET
    workflow_step: Annotated[int, Meta(ge=0, description="Its position in the workflow.")] | UnsetType = UNSET
    workflow_step_id: str | UnsetType = UNSET

    previous_state: State | UnsetType = UNSET
    rate_limit_until: Annotated[Timestamp, Meta(description="When its limit has room again.")] | UnsetType = UNSET
    checkpoint: (
        Annotated[
            JobCheckpoint | Extended[JobCheckpoint],
            Meta(description="What an earlier attempt has saved, to whoever fetches it."),
        ]
        | UnsetType
    ) = UNSET
    parent_results: (
        Annotated[list[Raw], Meta(description="What earlier steps of its workflow hand on, to whoever fetches it.")] | UnsetType
    ) = UNSET
    parent_results_by_index: (
        Annotated[dict[str, Raw], Meta(description="The same as an object by the steps' indexes.")] | UnsetType
    ) = UNSET


A = TypeVar("A", bound=JobAnswer)
JobView = JobAnswer | Extended[JobAnswer]
"""A job in an answer."""


class OneJob(Struct):
    """The answer about one job."""

    job: JobView


class EnqueuedJob(OneJob):
    """A new job."""

    warnings: Warnings | UnsetType = UNSET


class AdminChangedJob(Struct):
    """The answer to what an operator does to one job."""

    job: JobView


class PushedJob(Struct, omit_defaults=True):
    """Nothing new: the job that a `unique` policy found."""

    job: JobView
    deduplicated: bool | UnsetType = UNSET


def job_view(job: Job, *, previous_state: State | None = None) -> JobView:
    """A job with all that there is to say about it. Members that OJS does not define stand beside those that it does."""
    answer = job_answer(job)
    if previous_state is not None:
        answer.previous_state = previous_state
    return with_extra(answer, job)


def with_extra(answer: A, job: Job) -> A | Extended[A]:
    """The answer with the members that the client has added, if any, unless one is called like a member of OJS."""
    return Extended(answer, job.extra | members(answer)) if job.extra else answer


def job_answer(job: Job) -> JobAnswer:
    """The members that OJS defines."""
    answer = JobAnswer(
        specversion=SPECVERSION,
        id=job.id,
        type=job.type,
        state=job.state,
        queue=job.queue,
        args=job.args,
        meta=job.meta,
        priority=job.priority,
        tags=job.tags,
        attempt=job.attempt,
        max_attempts=job.retry.max_attempts,
        timeout_ms=job.timeout_ms or DEFAULT_TIMEOUT_MS,
        visibility_timeout_ms=job.visibility_timeout_ms or DEFAULT_LEASE_MS,
        retry=_retry_of(job),
        created_at=format_ms(job.created_at),
    )
    if job.enqueued_at is not None:
        answer.enqueued_at = format_ms(job.enqueued_at)
    if job.scheduled_at is not None:
        answer.scheduled_at = job.verbatim.get("scheduled_at") or format_ms(job.scheduled_at)
    if job.expires_at is not None:
        answer.expires_at = job.verbatim.get("expires_at") or format_ms(job.expires_at)
    if job.uncharged:
        answer.uncounted_attempts = job.uncharged
    if job.activated_at is not None:
        answer.activated_at = format_ms(job.activated_at)
    if job.re_enqueued_at is not None:
        answer.re_enqueued_at = format_ms(job.re_enqueued_at)
    if job.workflow is not None:
        answer.workflow_id = job.workflow.id
        answer.workflow_step = job.workflow.index
        answer.workflow_step_id = job.workflow.step
    _add_requests(answer, job)
    _add_history(answer, job)
    return answer


def _retry_of(job: Job) -> Raw:
    """The effective policy, with the members of extensions that were sent in it."""
    if not job.retry_extensions:
        return retry_raw(job.retry)
    return Raw(encode(extended(retry_policy(job.retry), job.retry_extensions)))


def _add_history(answer: JobAnswer, job: Job) -> None:
    if job.started_at is not None:
        answer.started_at = format_ms(job.started_at)
    if job.completed_at is not None:
        answer.completed_at = format_ms(job.completed_at)
    if job.cancelled_at is not None:
        answer.cancelled_at = format_ms(job.cancelled_at)
    if job.discarded_at is not None:
        answer.discarded_at = format_ms(job.discarded_at)
    if job.next_attempt_at is not None:
        answer.next_attempt_at = format_ms(job.next_attempt_at)
    if job.retry_delay_ms is not None:
        answer.retry_delay_ms = job.retry_delay_ms
    if job.worker is not None:
        answer.worker_id = job.worker
    if job.result or job.result_blob is not None:
        if job.result:
            answer.result = job.result
        answer.result_size_bytes = job.result_bytes or 0
        expires_at = result_expires_at(job)
        if expires_at is not None:
            answer.result_expires_at = format_ms(expires_at)
    if job.result_stored_at is not None:
        answer.result_stored_at = format_ms(job.result_stored_at)
    if job.error is not None:
        answer.error = failed_attempt(job.error)
    if job.errors:
        answer.errors = [failed_attempt(error) for error in job.errors]


def _add_requests(answer: JobAnswer, job: Job) -> None:
    if job.timeout_in_seconds and job.timeout_ms is not None:
        answer.timeout = seconds(job.timeout_ms)
    if job.total_timeout_ms is not None:
        answer.total_timeout = seconds(job.total_timeout_ms)
    if job.enqueue_ttl_ms is not None:
        answer.enqueue_ttl = seconds(job.enqueue_ttl_ms)
    if job.heartbeat_timeout_ms is not None:
        answer.heartbeat_timeout = seconds(job.heartbeat_timeout_ms)
    if job.grace_period_ms is not None:
        answer.grace_period = seconds(job.grace_period_ms)
    if job.result_ttl_s is not None:
        answer.result_ttl = job.result_ttl_s
    if job.result_size_limit is not None:
        answer.result_size_limit = job.result_size_limit
    if job.schema is not None:
        answer.schema = job.schema
    if job.version is not None:
        answer.version = job.version
    if job.unique:
        answer.unique = job.unique
    if job.rate_limit:
        answer.rate_limit = job.rate_limit
    if job.metadata:
        answer.metadata = job.metadata


def failed_attempt(error: JobError) -> contract.JobError:
    """One failed attempt as clients read it."""
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
