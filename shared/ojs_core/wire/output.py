"""The bodies of answers: the stored document as clients read it.

Nothing is null, because client libraries stumble over nulls where they expect an absent member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ojs_core.base.times import format_ms
from ojs_core.domain.job import NOTHING, Job, JobError, State
from ojs_core.domain.transitions import DEFAULT_LEASE_MS, DEFAULT_TIMEOUT_MS, LIVENESS_MS
from ojs_core.domain.transitions.retention import result_expires_at
from ojs_core.wire.enqueue import SPECVERSION
from ojs_core.wire.retry import retry_members, retry_raw

_HEARTBEAT_INTERVAL_S: Final = 5
_NULL: Final = Raw(b"null")

_TIMES: Final = (
    "expires_at",
    "started_at",
    "completed_at",
    "cancelled_at",
    "discarded_at",
    "activated_at",
    "re_enqueued_at",
    "next_attempt_at",
    "result_stored_at",
)
_DURATIONS: Final = (
    ("total_timeout", "total_timeout_ms"),
    ("enqueue_ttl", "enqueue_ttl_ms"),
    ("heartbeat_timeout", "heartbeat_timeout_ms"),
    ("grace_period", "grace_period_ms"),
)

encode: Final = msgspec.json.Encoder().encode


def job_view(job: Job) -> dict[str, Any]:
    """The job object; values may be `Raw`. Members that OJS does not define stand beside those that it does."""
    view: dict[str, Any] = dict(job.extra) if job.extra else {}
    view |= {
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
        "retry": retry_raw(job.retry),
        "created_at": format_ms(job.created_at),
    }
    if job.enqueued_at is not None:
        view["enqueued_at"] = format_ms(job.enqueued_at)
    if job.scheduled_at is not None:
        view["scheduled_at"] = job.verbatim.get("scheduled_at") or format_ms(job.scheduled_at)
    _add_history(view, job)
    _add_requests(view, job)
    if job.workflow is not None:
        view["workflow_id"] = job.workflow.id
        view["workflow_step"] = job.workflow.index
        view["workflow_step_id"] = job.workflow.step
    return view


def _add_history(view: dict[str, Any], job: Job) -> None:
    for name in _TIMES:
        at = getattr(job, name)
        if at is not None:
            view[name] = job.verbatim.get(name) or format_ms(at)
    if "next_attempt_at" in view:
        view["next_retry_at"] = view["next_attempt_at"]
    if job.retry_delay_ms is not None:
        view["retry_delay_ms"] = job.retry_delay_ms
    if job.worker is not None:
        view["worker_id"] = job.worker
    size = job.result_bytes
    if size is not None:
        if job.result:
            view["result"] = job.result
        view["result_size_bytes"] = size
        expires_at = result_expires_at(job)
        if expires_at is not None:
            view["result_expires_at"] = format_ms(expires_at)
    if job.error is not None:
        view["error"] = error_view(job.error)
    if job.errors:
        view["errors"] = [error_view(error) for error in job.errors]


def _add_requests(view: dict[str, Any], job: Job) -> None:
    if job.timeout_in_seconds and job.timeout_ms is not None:
        view["timeout"] = _seconds(job.timeout_ms)
    for name, attribute in _DURATIONS:
        ms = getattr(job, attribute)
        if ms is not None:
            view[name] = _seconds(ms)
    if job.result_ttl_s is not None:
        view["result_ttl"] = job.result_ttl_s
    if job.result_size_limit is not None:
        view["result_size_limit"] = job.result_size_limit
    if job.schema is not None:
        view["schema"] = job.schema
    if job.unique:
        view["unique"] = job.unique
    if job.rate_limit:
        view["rate_limit"] = job.rate_limit
    if job.metadata:
        view["metadata"] = job.metadata


def error_view(error: JobError) -> dict[str, Any]:
    """One failed attempt as clients read it."""
    at = format_ms(error.at)
    view: dict[str, Any] = {
        "code": error.code,
        "type": error.type,
        "message": error.message,
        "attempt": error.attempt,
        "occurred_at": at,
        "timestamp": at,
    }
    if error.retryable is not None:
        view["retryable"] = error.retryable
    if error.details:
        view["details"] = error.details
    if error.backtrace:
        view["backtrace"] = error.backtrace
    if error.generation:
        view["retry_generation"] = error.generation
    return view


def _seconds(ms: int) -> int | float:
    return ms // 1_000 if ms % 1_000 == 0 else ms / 1_000


def envelope(job: Job) -> dict[str, Any]:
    """What the client asked for, decoded and flat, as enqueue middleware sees it; `parse_enqueue` reads it back."""
    asked: dict[str, Any] = {name: msgspec.json.decode(raw) for name, raw in job.extra.items()}
    asked |= {
        "specversion": SPECVERSION,
        "id": job.id,
        "type": job.type,
        "queue": job.queue,
        "args": msgspec.json.decode(job.args),
        "meta": msgspec.json.decode(job.meta),
        "priority": job.priority,
        "tags": list(job.tags),
        "retry": retry_members(job.retry) | {"non_retryable_errors": list(job.retry.non_retryable_errors)},
    }
    if job.state is State.PENDING:
        asked["pending"] = True
    for name in ("scheduled_at", "expires_at"):
        at = getattr(job, name)
        if at is not None:
            asked[name] = job.verbatim.get(name) or format_ms(at)
    if job.timeout_ms is not None and not job.timeout_in_seconds:
        asked["timeout_ms"] = job.timeout_ms
    if job.visibility_timeout_ms is not None:
        asked["visibility_timeout_ms"] = job.visibility_timeout_ms
    _add_requests(asked, job)
    for name in ("unique", "rate_limit", "metadata"):
        if name in asked:
            asked[name] = msgspec.json.decode(asked[name])
    return asked


# Answers


def job_body(job: Job, *, flat: bool = False, beside: Mapping[str, Any] = {}, **more: Any) -> bytes:
    """`{"job": …}` with `more` inside the job and other members `beside` it; `flat` repeats the job's members there, too,
    for clients that do not unwrap.
    """
    view = job_view(job)
    view |= more
    return encode({**(view if flat else {}), "job": view, **beside})


def fetch_body(jobs: Iterable[Job], inputs: Mapping[str, Sequence[Raw]] = {}) -> bytes:
    """Fetched jobs; members of workflows with the results that they are given, as a list and by index."""
    return encode({"jobs": [_fetched(job, inputs) for job in jobs]})


def _fetched(job: Job, inputs: Mapping[str, Sequence[Raw]]) -> dict[str, Any]:
    view = job_view(job)
    if job.workflow is not None:
        given = inputs.get(job.id, ())
        view["parent_results"] = given
        view["parent_results_by_index"] = {str(index): result for index, result in enumerate(given)}
    return view


def ack_body(job: Job) -> bytes:
    """The answer to an ack, under both names of the id."""
    return encode({"acknowledged": True, **_outcome(job), "job": job_view(job)})


def nack_body(job: Job, closed_until: int | None = None) -> bytes:
    """The answer to a nack: what becomes of the job, and when; and until when (Unix ms) its limit lets nothing start."""
    closed = {} if closed_until is None else {"rate_limit_until": format_ms(closed_until)}
    return encode({**_outcome(job), **closed, "job": job_view(job)})


def _outcome(job: Job) -> dict[str, Any]:
    outcome: dict[str, Any] = {
        "id": job.id,
        "job_id": job.id,
        "state": job.state,
        "attempt": job.attempt,
        "max_attempts": job.retry.max_attempts,
    }
    for name in ("completed_at", "discarded_at", "next_attempt_at"):
        at = getattr(job, name)
        if at is not None:
            outcome[name] = format_ms(at)
    if job.state is State.RETRYABLE:
        outcome["retry_delay_ms"] = job.retry_delay_ms
    return outcome


def heartbeat_body(state: str, extended: Sequence[str], cancelled: Sequence[str], now: int) -> bytes:
    """The answer to a heartbeat; `cancelled` are jobs that the worker should stop."""
    answer: dict[str, Any] = {
        "acknowledged": True,
        "state": state,
        "jobs_extended": extended,
        "server_time": format_ms(now),
    }
    if cancelled:
        answer["cancelled_jobs"] = cancelled
    return encode(answer)


def registered_body(worker_id: str, now: int) -> bytes:
    """The answer to a registration; intervals are in seconds (ojs-worker-protocol §3)."""
    return encode(
        {
            "ok": True,
            "worker_id": worker_id,
            "server_time": format_ms(now),
            "heartbeat_interval": _HEARTBEAT_INTERVAL_S,
            "heartbeat_timeout": LIVENESS_MS // 1_000,
            "visibility_timeout_default": DEFAULT_LEASE_MS // 1_000,
        }
    )


# Results


def without_expired_result(job: Job, now: int) -> Job:
    """The job without a result whose time (`result_ttl`) is over, though its record is still there."""
    expires_at = result_expires_at(job)
    if expires_at is None or expires_at > now:
        return job
    return replace(job, result=NOTHING, result_blob=None, result_stored_at=None)


def result_view(job: Job) -> Mapping[str, Any]:
    """What a client that asks for a result gets: `result` is null while, or because, there is none."""
    view: dict[str, Any] = {"job_id": job.id, "state": job.state, "result": job.result or _NULL}
    if job.completed_at is not None:
        view["completed_at"] = format_ms(job.completed_at)
    if job.error is not None:
        view["error"] = error_view(job.error)
    return view
