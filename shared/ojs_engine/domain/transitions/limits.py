"""What the server reports when a job outlives one of its limits (ojs-timeouts §8)."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import NOTHING, Job, JobError
from ojs_engine.domain.transitions.deadlines import Cause, execution_ms, life_began
from ojs_engine.domain.transitions.log import TransitionName


def outlived(job: Job, limit: Cause, now: int) -> tuple[JobError, TransitionName]:
    """The error and the log's word for a passed `limit`."""
    match limit:
        case "expired":
            error = server_error(job, limit, "the job's expires_at has passed", now, retryable=False)
            return error, "expired"
        case "enqueue_ttl_expired":
            details = _times("enqueue_ttl", job.enqueue_ttl_ms, job.enqueued_at, now)
            message = "the job was not started within its enqueue_ttl"
            return server_error(job, limit, message, now, details=details, retryable=False), "ttl_expired"
        case "total_timeout":
            details = _times("total", job.total_timeout_ms, life_began(job), now)
            message = "the job did not finish within its total_timeout"
            return server_error(job, limit, message, now, details=details, retryable=False), "total_timed_out"
        case "timeout":
            details = _times("execution", execution_ms(job), job.started_at, now)
            return server_error(job, limit, "the attempt ran longer than its timeout", now, details=details), "timed_out"
        case "stalled":
            details = _times("stalled", job.heartbeat_timeout_ms, job.beat_at, now)
            message = "no heartbeat arrived within the job's heartbeat_timeout"
            return server_error(job, limit, message, now, details=details), "stalled"
        case _:
            message = "the lease ran out before an answer came"
            return server_error(job, "visibility_timeout", message, now), "lease_expired"


def server_error(job: Job, kind: str, message: str, now: int, *, details: Raw = NOTHING, retryable: bool = True) -> JobError:
    """An error that the server found out; `kind` is its code and its type."""
    return JobError(
        code=kind,
        type=kind,
        message=message,
        attempt=job.attempt,
        at=now,
        retryable=retryable,
        details=details,
        generation=job.generation,
    )


def _times(kind: str, limit_ms: int | None, since: int | None, now: int) -> Raw:
    elapsed_ms = now - (since or now)
    seconds = {"limit_seconds": _seconds(limit_ms or 0), "elapsed_seconds": _seconds(elapsed_ms)}
    return Raw(msgspec.json.encode({"timeout_kind": kind, **seconds}))


def _seconds(ms: int) -> int | float:
    return ms // 1_000 if ms % 1_000 == 0 else ms / 1_000
