"""What happens to a job by itself: judged by the record alone, whatever timer brought the question (architecture §6)."""

from __future__ import annotations

from msgspec import Struct

from ojs_nats.errors import conflict
from ojs_nats.job import Job, JobError, State, Timer
from ojs_nats.transitions.deadlines import (
    DEFAULT_TIMEOUT_MS,
    LIVENESS_MS,
    expired,
    next_deadline,
    real_deadline,
)
from ojs_nats.transitions.failure import limit_error, non_retryable, recorded, server_error
from ojs_nats.transitions.log import Event
from ojs_nats.transitions.outcome import discarded, failed
from ojs_nats.transitions.result import Moment, Rearm, Transition
from ojs_nats.transitions.settle import conclude, made_available

__all__ = ["Liveness", "LivenessNeeded", "due", "expire", "needs_liveness"]

_LOOK_AGAIN_MS = 5_000


class Liveness(Struct, frozen=True):
    """What is known of a worker. `seen_at`: its last sign of life (Unix ms), None if it never registered or beat.
    `covered`: the gateways' own beats have no gap in the last 30 s, so that silence means the worker's death."""

    seen_at: int | None
    covered: bool


class LivenessNeeded(Exception):
    """`due` can't decide without the `Liveness` of `worker`."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"the worker record of {worker!r} is needed")
        self.worker = worker


def needs_liveness(job: Job, now: int) -> str | None:
    """The id of the worker whose `Liveness` decides about the job at `now`, if one does."""
    if job.deleted or job.state is not State.ACTIVE or job.worker is None:
        return None
    coming = next_deadline(job)
    asked = coming is not None and coming[0] <= now < real_deadline(job).at
    return job.worker if asked else None


def due(job: Job, moment: Moment, liveness: Liveness | None = None) -> Transition | Rearm | None:
    """Do what is due at `moment.now`; `Rearm` if nothing is yet, None if nothing ever will be.

    Raises `LivenessNeeded` if `needs_liveness` names a worker and `liveness` is None.
    """
    now = moment.now
    coming = next_deadline(job)
    if coming is None or job.timer is None:
        return None
    if coming[0] > now:
        return Rearm(Timer(job.timer.op, *coming))
    if job.state is State.ACTIVE:
        worker = needs_liveness(job, now)
        return _run_out(job, moment) if worker is None else _check(job, worker, job.timer.op, moment, liveness)
    if expired(job, now) is not None:
        return expire(job, moment)
    return conclude(job, made_available(job, moment), moment, "promoted")


def expire(job: Job, moment: Moment) -> Transition:
    """Discard a waiting job that has outlived a limit; never a dead letter. Raises `conflict` if it has not."""
    now = moment.now
    match expired(job, now):
        case "expired":
            error = server_error(job, "expired", "the job's expires_at has passed", now, retryable=False)
            event: Event = "expired"
        case "enqueue_ttl_expired":
            error = limit_error(
                job,
                "enqueue_ttl_expired",
                "the job was not started within its enqueue_ttl",
                now,
                timeout_kind="enqueue_ttl",
                since=job.enqueued_at or 0,
                limit_ms=job.enqueue_ttl_ms or 0,
                retryable=False,
            )
            event = "ttl_expired"
        case "total_timeout":
            error, event = _total_timeout(job, now), "total_timed_out"
        case None:
            raise conflict(f"cannot expire job {job.id}: no limit has passed", job.id, job.state, "past its limits")
    return conclude(job, discarded(recorded(job, error), moment), moment, event, reason=error.type)


def _total_timeout(job: Job, now: int) -> JobError:
    return limit_error(
        job,
        "total_timeout",
        "the job did not finish within its total_timeout",
        now,
        timeout_kind="total",
        since=job.re_enqueued_at or job.created_at,
        limit_ms=job.total_timeout_ms or 0,
        retryable=False,
    )


def _run_out(job: Job, moment: Moment) -> Transition:
    now = moment.now
    match real_deadline(job).cause:
        case "total_timeout":
            return failed(job, _total_timeout(job, now), "discard", moment, "total_timed_out")
        case "timeout":
            limit = (job.timeout_ms or DEFAULT_TIMEOUT_MS) + (job.grace_period_ms or 0)
            message = "the attempt ran longer than its timeout"
            error = limit_error(
                job,
                "timeout",
                message,
                now,
                timeout_kind="execution",
                since=job.started_at or 0,
                limit_ms=limit,
                retryable=True,
            )
            return _retried(job, error, moment, "timed_out")
        case "stalled":
            error = limit_error(
                job,
                "stalled",
                "no heartbeat arrived within the job's heartbeat_timeout",
                now,
                timeout_kind="stalled",
                since=job.beat_at or 0,
                limit_ms=job.heartbeat_timeout_ms or 0,
                retryable=True,
            )
            return _retried(job, error, moment, "stalled")
        case _:
            error = server_error(job, "visibility_timeout", "the lease ran out before an answer came", now)
            return failed(job, error, "at_once", moment, "lease_expired")


def _retried(job: Job, error: JobError, moment: Moment, event: Event) -> Transition:
    listed = non_retryable(job.retry.non_retryable_errors, error, None)
    return failed(job, error, "end" if listed else "retry", moment, event)


def _check(job: Job, worker: str, op: str, moment: Moment, liveness: Liveness | None) -> Transition | Rearm:
    if liveness is None:
        raise LivenessNeeded(worker)
    real = real_deadline(job)
    if liveness.seen_at is None:
        # It never spoke for itself, so its silence means nothing (C21): the lease decides.
        return Rearm(Timer(op, real.at, real.service))
    alive_until = liveness.seen_at + LIVENESS_MS
    if alive_until > moment.now:
        return Rearm(Timer(op, min(real.at, alive_until), real.service))
    if not liveness.covered:
        return Rearm(Timer(op, min(real.at, moment.now + _LOOK_AGAIN_MS), real.service))
    error = server_error(job, "worker_death", f"worker {worker!r} has not been heard of for 30 s", moment.now)
    return failed(job, error, "at_once", moment, "worker_died")
