"""Which events a transition is, and what they say (ojs-events §3, §4; ojs-timeouts §9; ojs-dead-letter §8; ojs-results §9).

`job.enqueued` is every entry into `available`; `job.discarded` every discard, dead letter or not. Some transitions have
no event because the vocabulary has none: the push of a pending job, the new token of an available one, the removal of a
finished job that is no dead letter.
"""

from __future__ import annotations

from typing import Any, Final

from ojs_engine.base.times import format_ms
from ojs_engine.domain.events.envelope import Event, job_event
from ojs_engine.domain.job import Entry, Job, JobError, State
from ojs_engine.domain.past import Logged, stack_trace
from ojs_engine.domain.rate_limits.policy import policy_of
from ojs_engine.domain.transitions.retention import result_expires_at

RESULT_BYTES: Final = 4_096
"""A larger result is read from the job; the event goes without."""

ENTERED: Final = {
    "job.scheduled": State.SCHEDULED,
    "job.enqueued": State.AVAILABLE,
    "job.started": State.ACTIVE,
    "job.retrying": State.RETRYABLE,
    "job.completed": State.COMPLETED,
    "job.cancelled": State.CANCELLED,
    "job.discarded": State.DISCARDED,
}
"""Events that tell that a job has come into a state. Of those of one entry that changes the state, one is such an event and has
that state in its data.
"""

NOBODY: Final = "unknown"
"""Worker id of a fetch that named none: the member is required."""
_PUT_OFF: Final = {"code": "put_off", "type": "put_off", "message": "the worker has put the job off"}
"""Of an attempt that isn't a failure, in events that must have an error."""


def events_of(job: Job, entry: Entry) -> list[Event]:
    """Return the events of one entry of the job's log, in lifecycle order; `job` may be any later revision."""
    return _lifecycle(Logged.of(job, entry))


def _lifecycle(one: Logged) -> list[Event]:
    entry = one.entry
    match entry.event:
        case "pushed" | "moved" if entry.after is State.AVAILABLE:
            return [_enqueued(one)]
        case "pushed" if entry.after is State.SCHEDULED:
            return [_scheduled(one)]
        case "postponed":
            return [_scheduled(one)]
        case "dropped" if entry.reason == "rate_limited":
            policy = policy_of(one.job)
            return [*_outcome(one), job_event(one, "rate_limit.dropped", **_given(key=policy and policy.key))]
        case "requeued" if entry.after is State.RETRYABLE:
            return [job_event(one, "job.retrying", **_next_attempt(one), error=_PUT_OFF)]
        case "activated" | "promoted" | "requeued":
            return [_enqueued(one)]
        case "retried":
            return [*_back_from_the_dead(one), _enqueued(one)]
        case "claimed":
            return [job_event(one, "job.started", worker_id=entry.worker or NOBODY, attempt=entry.attempt)]
        case "acked":
            return [_completed(one), *_result_stored(one)]
        case "failed" | "lease_expired" | "worker_died":
            return [_failed(one), *_outcome(one)]
        case "timed_out":
            return [_overrun(one, "job.timeout", "execution"), _failed(one), *_outcome(one)]
        case "stalled":
            return [_overrun(one, "job.stalled", "stalled"), _failed(one), *_outcome(one)]
        case "total_timed_out":
            ended = [_failed(one)] if entry.before is State.ACTIVE else []
            return [_overrun(one, "job.total_timeout", "total"), *ended, *_outcome(one)]
        case "ttl_expired":
            return [_overrun(one, "job.ttl_expired", "enqueue_ttl"), *_outcome(one)]
        case "dropped" if entry.reason == "overflow":
            dropped = ("backpressure.dropped", "queue.overflow")
            return [*_outcome(one), *(job_event(one, event_type) for event_type in dropped)]
        case "dropped":
            return _outcome(one)
        case "expired":
            return [_expired(one), *_outcome(one)]
        case "cancelled":
            return [job_event(one, "job.cancelled", **_given(reason=entry.reason))]
        case "reprioritised":
            return [_reprioritised(one)]
        case "deleted":
            return [job_event(one, "dead_letter.deleted")]
        case "pruned":
            return [job_event(one, "dead_letter.pruned", count=1, **_given(reason=entry.reason))]
        case _:
            return []


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _scheduled(one: Logged) -> Event:
    return job_event(one, "job.scheduled", scheduled_at=_scheduled_at(one.job) or format_ms(one.entry.at))


def _enqueued(one: Logged) -> Event:
    job, entry = one.job, one.entry
    scheduled_at = _scheduled_at(job) if entry.before is State.SCHEDULED else None
    return job_event(one, "job.enqueued", priority=job.priority, **_given(scheduled_at=scheduled_at))


def _scheduled_at(job: Job) -> str | None:
    return None if job.scheduled_at is None else job.verbatim.get("scheduled_at") or format_ms(job.scheduled_at)


def _completed(one: Logged) -> Event:
    job, entry = one.job, one.entry
    members: dict[str, Any] = {"duration_ms": one.duration_ms or 0, "attempt": entry.attempt}
    if entry.worker is not None:
        members["worker_id"] = entry.worker
    if job.result and len(job.result) <= RESULT_BYTES:  # what is stored apart isn't read for an event
        members["result"] = job.result
    return job_event(one, "job.completed", **members)


def _result_stored(one: Logged) -> list[Event]:
    job = one.job
    size = job.result_bytes
    if size is None:
        return []
    expires_at = result_expires_at(job)
    members = _given(expires_at=None if expires_at is None else format_ms(expires_at))
    return [job_event(one, "result.stored", result_size_bytes=size, **members)]


def _failed(one: Logged) -> Event:
    entry, error = one.entry, one.error
    told = _told(error) | {"retryable": error.retryable is not False}
    trace = stack_trace(error.backtrace)
    if trace is not None:
        told["stack_trace"] = trace
    members = _given(duration_ms=one.duration_ms, worker_id=entry.worker)
    return job_event(one, "job.failed", attempt=entry.attempt, error=told, **members)


def _told(error: JobError) -> dict[str, Any]:
    return {"code": error.code, "type": error.type, "message": error.message}


def _outcome(one: Logged) -> list[Event]:
    if one.entry.after is State.DISCARDED:
        return _discarded(one)
    retrying = job_event(one, "job.retrying", **_next_attempt(one), error=_told(one.error))
    return [retrying, _enqueued(one)] if one.entry.after is State.AVAILABLE else [retrying]


def _next_attempt(one: Logged) -> dict[str, Any]:
    limit, at = one.job.retry.max_attempts, format_ms(one.next_retry_at)
    return {"attempt": one.entry.attempt, "max_attempts": limit, "next_retry_at": at}


def _discarded(one: Logged) -> list[Event]:
    members = {"total_attempts": one.entry.attempt, "last_error": _told(one.error)}
    events = [job_event(one, "job.discarded", **members)]
    if one.dead_letter:
        events.append(job_event(one, "dead_letter.added", **members))
    return events


def _overrun(one: Logged, event_type: str, kind: str) -> Event:
    return job_event(one, event_type, attempt=one.entry.attempt, **one.overrun(kind))


def _expired(one: Logged) -> Event:
    job, entry = one.job, one.entry
    expires_at = job.expires_at if job.expires_at is not None else entry.at
    return job_event(
        one,
        "job.expired",
        created_at=format_ms(job.created_at),
        expired_at=format_ms(entry.at),
        ttl_ms=max(0, expires_at - job.created_at),
    )


def _reprioritised(one: Logged) -> Event:
    previous, _, new = (one.entry.reason or "").partition(" to ")
    return job_event(one, "priority.changed", previous_priority=int(previous), new_priority=int(new))


def _back_from_the_dead(one: Logged) -> list[Event]:
    if one.entry.reason != "dead_letter":
        return []
    return [job_event(one, "dead_letter.retried", retry_count=one.generation)]
