"""Which events a transition is, and what they say (ojs-events §3, §4; ojs-timeouts §9; ojs-dead-letter §8; ojs-results §9).

`job.enqueued` is every entry into `available`; `job.discarded` every discard, dead letter or not. Some transitions have
no event because the vocabulary has none: the push of a pending job, the new token of an available one, the removal of a
finished job that is no dead letter.
"""

from __future__ import annotations

from typing import Any, Final

from ojs_core.base.times import format_ms
from ojs_core.domain.events.envelope import Event, job_event
from ojs_core.domain.events.facts import Facts, stack_trace
from ojs_core.domain.events.workflows import events_of_member
from ojs_core.domain.job import Entry, Job, JobError, State
from ojs_core.domain.rate_limits.policy import policy_of
from ojs_core.domain.transitions.retention import result_expires_at

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
    """The events of one entry of the job's log, in lifecycle order; `job` may be any later revision.

    What a member of a workflow does is an event of the workflow, too.
    """
    facts = Facts.of(job, entry)
    events = _lifecycle(facts)
    return events if job.workflow is None else [*events, *events_of_member(job, entry, facts.duration_ms)]


def _lifecycle(facts: Facts) -> list[Event]:
    job, entry = facts.job, facts.entry
    match entry.event:
        case "pushed" if entry.after is State.SCHEDULED:
            return [_scheduled(facts)]
        case "postponed":
            return [_scheduled(facts)]
        case "dropped" if entry.reason == "rate_limited":
            return [*_outcome(facts), job_event(job, entry, "rate_limit.dropped", **_limit_of(job))]
        case "pushed" if entry.after is State.AVAILABLE:
            return [_enqueued(facts)]
        case "moved" if entry.after is State.AVAILABLE:
            return [_enqueued(facts)]
        case "requeued" if entry.after is State.RETRYABLE:
            return [job_event(job, entry, "job.retrying", **_next_attempt(facts), error=_PUT_OFF)]
        case "activated" | "promoted" | "requeued":
            return [_enqueued(facts)]
        case "retried":
            return [*_back_from_the_dead(facts), _enqueued(facts)]
        case "claimed":
            return [job_event(job, entry, "job.started", worker_id=entry.worker or NOBODY, attempt=entry.attempt)]
        case "acked":
            return [_completed(facts), *_result_stored(facts)]
        case "failed" | "lease_expired" | "worker_died":
            return [_failed(facts), *_outcome(facts)]
        case "timed_out":
            return [_overrun(facts, "job.timeout", "execution"), _failed(facts), *_outcome(facts)]
        case "stalled":
            return [_overrun(facts, "job.stalled", "stalled"), _failed(facts), *_outcome(facts)]
        case "total_timed_out":
            ended = [_failed(facts)] if entry.before is State.ACTIVE else []
            return [_overrun(facts, "job.total_timeout", "total"), *ended, *_outcome(facts)]
        case "ttl_expired":
            return [_overrun(facts, "job.ttl_expired", "enqueue_ttl"), *_outcome(facts)]
        case "dropped" if entry.reason == "overflow":
            dropped = ("backpressure.dropped", "queue.overflow")
            return [*_outcome(facts), *(job_event(job, entry, event_type) for event_type in dropped)]
        case "dropped":
            return _outcome(facts)
        case "expired":
            return [_expired(facts), *_outcome(facts)]
        case "cancelled":
            return [job_event(job, entry, "job.cancelled", **_given(reason=entry.reason))]
        case "reprioritised":
            return [_reprioritised(facts)]
        case "deleted":
            return [job_event(job, entry, "dead_letter.deleted")]
        case "pruned":
            return [job_event(job, entry, "dead_letter.pruned", count=1, **_given(reason=entry.reason))]
        case _:
            return []


def _limit_of(job: Job) -> dict[str, Any]:
    policy = policy_of(job)
    return {} if policy is None else _given(key=policy.key)


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _scheduled(facts: Facts) -> Event:
    job, entry = facts.job, facts.entry
    return job_event(job, entry, "job.scheduled", scheduled_at=_scheduled_at(job) or format_ms(entry.at))


def _enqueued(facts: Facts) -> Event:
    job, entry = facts.job, facts.entry
    scheduled_at = _scheduled_at(job) if entry.before is State.SCHEDULED else None
    return job_event(job, entry, "job.enqueued", priority=job.priority, **_given(scheduled_at=scheduled_at))


def _scheduled_at(job: Job) -> str | None:
    return None if job.scheduled_at is None else job.verbatim.get("scheduled_at") or format_ms(job.scheduled_at)


def _completed(facts: Facts) -> Event:
    job, entry = facts.job, facts.entry
    members: dict[str, Any] = {"duration_ms": facts.duration_ms or 0, "attempt": entry.attempt}
    if entry.worker is not None:
        members["worker_id"] = entry.worker
    if job.result and len(job.result) <= RESULT_BYTES:  # what is stored apart isn't read for an event
        members["result"] = job.result
    return job_event(job, entry, "job.completed", **members)


def _result_stored(facts: Facts) -> list[Event]:
    job = facts.job
    size = job.result_bytes
    if size is None:
        return []
    expires_at = result_expires_at(job)
    members = _given(expires_at=None if expires_at is None else format_ms(expires_at))
    return [job_event(job, facts.entry, "result.stored", result_size_bytes=size, **members)]


def _failed(facts: Facts) -> Event:
    entry, error = facts.entry, facts.error
    told = _told(error) | {"retryable": error.retryable is not False}
    trace = stack_trace(error.backtrace)
    if trace is not None:
        told["stack_trace"] = trace
    members = _given(duration_ms=facts.duration_ms, worker_id=entry.worker)
    return job_event(facts.job, entry, "job.failed", attempt=entry.attempt, error=told, **members)


def _told(error: JobError) -> dict[str, Any]:
    return {"code": error.code, "type": error.type, "message": error.message}


def _outcome(facts: Facts) -> list[Event]:
    job, entry = facts.job, facts.entry
    if entry.after is State.DISCARDED:
        return _discarded(facts)
    retrying = job_event(
        job,
        entry,
        "job.retrying",
        **_next_attempt(facts),
        error=_told(facts.error),
    )
    return [retrying, _enqueued(facts)] if entry.after is State.AVAILABLE else [retrying]


def _next_attempt(facts: Facts) -> dict[str, Any]:
    return {
        "attempt": facts.entry.attempt,
        "max_attempts": facts.job.retry.max_attempts,
        "next_retry_at": format_ms(facts.next_retry_at),
    }


def _discarded(facts: Facts) -> list[Event]:
    job, entry = facts.job, facts.entry
    members = {"total_attempts": entry.attempt, "last_error": _told(facts.error)}
    events = [job_event(job, entry, "job.discarded", **members)]
    if facts.dead_letter:
        events.append(job_event(job, entry, "dead_letter.added", **members))
    return events


def _overrun(facts: Facts, event_type: str, kind: str) -> Event:
    return job_event(facts.job, facts.entry, event_type, attempt=facts.entry.attempt, **facts.overrun(kind))


def _expired(facts: Facts) -> Event:
    job, entry = facts.job, facts.entry
    expires_at = job.expires_at if job.expires_at is not None else entry.at
    return job_event(
        job,
        entry,
        "job.expired",
        created_at=format_ms(job.created_at),
        expired_at=format_ms(entry.at),
        ttl_ms=max(0, expires_at - job.created_at),
    )


def _reprioritised(facts: Facts) -> Event:
    previous, _, new = (facts.entry.reason or "").partition(" to ")
    return job_event(facts.job, facts.entry, "priority.changed", previous_priority=int(previous), new_priority=int(new))


def _back_from_the_dead(facts: Facts) -> list[Event]:
    if facts.entry.reason != "dead_letter":
        return []
    return [job_event(facts.job, facts.entry, "dead_letter.retried", retry_count=facts.generation)]
