"""The one place that knows when a job must next be looked at, and why."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ojs_engine.domain.job import Job, Service, State
from ojs_link.timings import Timings

DEFAULT_LEASE_MS: Final = 1_800_000
DEFAULT_TIMEOUT_MS: Final = 1_800_000
LIVENESS_MS: Final = 30_000
"""A worker not heard of for this long is dead."""


class WorkerTimes(Timings, frozen=True, kw_only=True):
    """How a worker's silence is judged: only tests have other times than these."""

    dead_ms: int = LIVENESS_MS
    """A worker not heard of for this long is dead."""
    look_again_ms: int = 5_000
    """How soon silence is judged again that no gateway could have heard."""


Cause = Literal[
    "scheduled",
    "backoff",
    "expired",
    "enqueue_ttl_expired",
    "total_timeout",
    "timeout",
    "stalled",
    "visibility_timeout",
    "liveness",
]


class Deadline(NamedTuple):
    """A time (Unix ms) at which a service has to act on the job. Causes that end a run or a job are its error type."""

    at: int
    service: Service
    cause: Cause


def deadlines(job: Job, workers: WorkerTimes = WorkerTimes()) -> list[Deadline]:
    """Everything that will happen to the job by itself, in its present state; among equals the first one decides."""
    found: list[Deadline] = []
    if job.deleted or job.terminal:
        return found
    if job.total_timeout_ms is not None:
        found.append(Deadline(life_began(job) + job.total_timeout_ms, "reaper", "total_timeout"))
    if job.state is State.ACTIVE:
        _add_active(job, found, workers)
        return found
    if job.expires_at is not None:
        found.append(Deadline(job.expires_at, "reaper", "expired"))
    if job.state is State.AVAILABLE:
        if job.enqueue_ttl_ms is not None and job.attempt == 0 and job.enqueued_at is not None:
            found.append(Deadline(job.enqueued_at + job.enqueue_ttl_ms, "reaper", "enqueue_ttl_expired"))
    elif job.state is State.SCHEDULED and job.scheduled_at is not None:
        found.append(Deadline(job.scheduled_at, "scheduler", "scheduled"))
    elif job.state is State.RETRYABLE and job.next_attempt_at is not None:
        found.append(Deadline(job.next_attempt_at, "scheduler", "backoff"))
    return found


def _add_active(job: Job, found: list[Deadline], workers: WorkerTimes) -> None:
    if job.started_at is not None:
        found.append(Deadline(job.started_at + execution_ms(job), "reaper", "timeout"))
    if job.heartbeat_timeout_ms is not None and job.beat_at is not None:
        found.append(Deadline(job.beat_at + job.heartbeat_timeout_ms, "reaper", "stalled"))
    if job.visible_until is not None:
        found.append(Deadline(job.visible_until, "reaper", "visibility_timeout"))
    if job.worker is not None and job.beat_at is not None:
        found.append(Deadline(job.beat_at + workers.dead_ms, "reaper", "liveness"))


def execution_ms(job: Job) -> int:
    """How long one attempt may run; the server grants a grace period only to a job that asked for one."""
    return (job.timeout_ms or DEFAULT_TIMEOUT_MS) + (job.grace_period_ms or 0)


def life_began(job: Job) -> int:
    """What the total timeout counts from: a manual retry is a new life, or it would end as soon as it began."""
    return job.re_enqueued_at or job.created_at


def next_deadline(job: Job, workers: WorkerTimes = WorkerTimes()) -> tuple[int, Service] | None:
    """When the job's one timer must fire and for whom, or None if nothing ever happens to it by itself."""
    first = min(deadlines(job, workers), key=_at, default=None)
    return None if first is None else (first.at, first.service)


def real_deadline(job: Job) -> Deadline:
    """The earliest deadline of an active job that decides by itself; the liveness check only asks a question."""
    return min((d for d in deadlines(job) if d.cause != "liveness"), key=_at)


def expired(job: Job, now: int) -> Cause | None:
    """Why a waiting job must not be handed out any more at `now` (Unix ms), by the limit that passed first: `expired`,
    `enqueue_ttl_expired` or `total_timeout`.
    """
    if job.state is State.ACTIVE:
        return None
    passed = min((d for d in deadlines(job) if d.service == "reaper" and d.at <= now), key=_at, default=None)
    return None if passed is None else passed.cause


def _at(deadline: Deadline) -> int:
    return deadline.at
