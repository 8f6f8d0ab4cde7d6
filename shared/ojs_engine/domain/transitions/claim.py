"""Holding a job: the claim, its lease and the check of who holds it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.base.errors import conflict
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions.deadlines import DEFAULT_LEASE_MS, expired
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.settle import conclude, entered, require, settle


class JobHolder(Struct, frozen=True):
    """Who says it holds the job; what is None was not said and is not checked.

    A job whose fetch named no worker is held by whoever knows of it: only a name that held an earlier attempt, and doesn't say
    that it means this one, contradicts the record (docs/adr/047).
    """

    worker: str | None = None
    attempt: int | None = None


def require_holder(job: Job, action: str, holder: JobHolder) -> None:
    """Refuse `action` with `conflict` unless the job is active and nothing that `holder` says contradicts the record."""
    require(job, action, State.ACTIVE)
    if holder.worker is not None and job.worker is not None and holder.worker != job.worker:
        message = f"cannot {action} job {job.id}: it is held by worker {job.worker!r}"
        raise conflict(message, job.id, job.state, f"held by {holder.worker!r}")
    if job.worker is None and holder.attempt is None and _held_before(job, holder.worker):
        message = f"cannot {action} job {job.id}: {holder.worker!r} held it before, and a fetch without a name now"
        raise conflict(message, job.id, job.state, f"held by {holder.worker!r}, or the attempt's number")
    if holder.attempt is not None and holder.attempt != job.attempt:
        message = f"cannot {action} job {job.id}: attempt {holder.attempt} is over, attempt {job.attempt} is running"
        raise conflict(message, job.id, job.state, f"attempt {holder.attempt}")


def _held_before(job: Job, worker: str | None) -> bool:
    return worker is not None and any(entry.worker == worker for entry in job.transitions)


def claim(job: Job, worker: str | None, lease_ms: int | None, moment: Moment) -> Transition:
    """Hand the job to a fetcher for `lease_ms`, else for the job's own visibility timeout, else for 30 minutes.

    Raises `conflict` if the job is not available, or has outlived a limit (see `expired`).
    """
    require(job, "fetch", State.AVAILABLE)
    limit = expired(job, moment.now)
    if limit is not None:
        raise conflict(f"cannot fetch job {job.id}: {limit}", job.id, job.state, "not past its limits")
    lease = lease_ms or job.visibility_timeout_ms or DEFAULT_LEASE_MS
    new = entered(
        job,
        State.ACTIVE,
        attempt=job.attempt + 1,
        worker=worker,
        started_at=moment.now,
        lease_ms=lease,
        visible_until=moment.now + lease,
        beat_at=moment.now if worker is not None else None,
    )
    return conclude(job, new, moment, "claimed", worker=worker)


def extend(job: Job, worker: str | None, lease_ms: int | None, moment: Moment) -> Transition | None:
    """Renew the lease at a heartbeat: for `lease_ms`, else the job's own visibility timeout, else as long as at the claim.

    None while the record need not change: more than half of the lease is left, and of the time after which the job counts
    as stalled. Writes no log entry; a write always carries a timer of its own op, by which it is recognised. Raises
    `conflict` if the job is not active or another worker holds it.
    """
    require(job, "extend", State.ACTIVE)
    if worker is not None and job.worker is not None:
        require_holder(job, "extend", JobHolder(worker))
    now = moment.now
    lease = lease_ms or job.visibility_timeout_ms or job.lease_ms or DEFAULT_LEASE_MS
    fresh_lease = job.visible_until is not None and lease == job.lease_ms and 2 * (job.visible_until - now) >= lease
    if fresh_lease and not _nearly_stalled(job, now):
        return None
    return settle(job, replace(job, lease_ms=lease, visible_until=now + lease, beat_at=now), moment, fresh=True)


def _nearly_stalled(job: Job, now: int) -> bool:
    if job.heartbeat_timeout_ms is None:
        return False
    return job.beat_at is None or 2 * (now - job.beat_at) > job.heartbeat_timeout_ms
