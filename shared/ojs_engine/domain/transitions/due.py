"""What happens to a job by itself: judged by the record alone, whatever timer brought the question."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ojs_engine.access.principal import Reach
from ojs_engine.base.errors import conflict
from ojs_engine.domain.job import NOTHING, Job, Service, State, Timer
from ojs_engine.domain.transitions.deadlines import WorkerTimes, expired, next_deadline, real_deadline
from ojs_engine.domain.transitions.failure import non_retryable, recorded
from ojs_engine.domain.transitions.limits import outlived, server_error
from ojs_engine.domain.transitions.outcome import FailureVerdict, discarded, failed, requeued
from ojs_engine.domain.transitions.result import Moment, Rearm, Transition
from ojs_engine.domain.transitions.rings import rings_for
from ojs_engine.domain.transitions.settle import conclude, made_available
from ojs_engine.domain.worker import CompleteList


class Liveness(Struct, frozen=True):
    """What is known of a worker. `seen_at`: its last sign of life (Unix ms), None if it never registered or beat.
    `covered`: the gateways' own beats have no gap in the last 30 s, so that silence means the worker's death.
    `left`: the sequence of the record by which it deregistered. `complete`: all that it holds, by its last heartbeat.
    `reach`: the jobs that whoever says all this may touch.
    """

    seen_at: int | None
    covered: bool
    left: int | None = None
    complete: CompleteList | None = None
    reach: Reach = Reach()


_SILENT: Final = Liveness(seen_at=None, covered=False)
"""What somebody says of a worker who may not touch its job."""


class LivenessNeededError(Exception):
    """`due` can't decide without the `Liveness` of `worker`."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"the worker record of {worker!r} is needed")
        self.worker = worker


def needs_liveness(job: Job, now: int, workers: WorkerTimes = WorkerTimes()) -> str | None:
    """The id of the worker whose `Liveness` decides about the job at `now`, if one does."""
    if job.deleted or job.state is not State.ACTIVE or job.worker is None:
        return None
    coming = next_deadline(job, workers)
    asked = coming is not None and coming[0] <= now < real_deadline(job).at
    return job.worker if asked else None


def due(job: Job, moment: Moment, liveness: Liveness | None = None, revision: int | None = None) -> Transition | Rearm | None:
    """Do what is due at `moment.now`; `Rearm` if nothing is yet, None if nothing ever will be, or the record rings again.

    Without the `revision` of the job's record nothing is taken back from a worker that is there.

    Raises `LivenessNeededError` if `needs_liveness` names a worker and `liveness` is None.
    """
    now = moment.now
    coming = next_deadline(job, moment.workers)
    if coming is None or job.timer is None:
        return None
    if coming[0] > now:
        return _later(job.timer, *coming, now)
    if job.state is State.ACTIVE:
        worker = needs_liveness(job, now, moment.workers)
        return _run_out(job, moment) if worker is None else _check(job, worker, job.timer, moment, liveness, revision)
    if expired(job, now) is not None:
        return expire(job, moment)
    return conclude(job, made_available(job, moment), moment, "promoted")


def expire(job: Job, moment: Moment) -> Transition:
    """Discard a waiting job that has outlived a limit; never a dead letter. Raises `conflict` if it has not."""
    limit = expired(job, moment.now)
    if limit is None:
        raise conflict(f"cannot expire job {job.id}: no limit has passed", job.id, job.state, "past its limits")
    error, event = outlived(job, limit, moment.now)
    return conclude(job, discarded(recorded(job, error), moment), moment, event, reason=error.type)


def _run_out(job: Job, moment: Moment) -> Transition:
    limit = real_deadline(job).cause
    error, event = outlived(job, limit, moment.now)
    verdict: FailureVerdict
    match limit:
        case "total_timeout":
            verdict = "discard"
        case "visibility_timeout":
            # No back-off, the work was never refused.
            verdict = "at_once"
        case _:
            verdict = "end" if non_retryable(job.retry.non_retryable_errors, error, NOTHING) else "retry"
    return failed(job, error, verdict, moment, event)


def _later(timer: Timer, at: int, service: Service, now: int) -> Rearm | None:
    return None if rings_for(timer, at, now) else Rearm(Timer(timer.op, at, service))


def _check(
    job: Job, worker: str, timer: Timer, moment: Moment, liveness: Liveness | None, revision: int | None
) -> Transition | Rearm | None:
    if liveness is None:
        raise LivenessNeededError(worker)
    if not liveness.reach.sees(job.queue, job.type):
        liveness = _SILENT
    if revision is not None and (taken_back := _taken_back(job, worker, moment, liveness, revision)) is not None:
        return taken_back
    real = real_deadline(job)
    if liveness.seen_at is None:
        # It never spoke for itself, so its silence means nothing: the lease decides.
        return _later(timer, real.at, real.service, moment.now)
    alive_until = liveness.seen_at + moment.workers.dead_ms
    if alive_until > moment.now:
        return _later(timer, min(real.at, alive_until), real.service, moment.now)
    if not liveness.covered:
        return _later(timer, min(real.at, moment.now + moment.workers.look_again_ms), real.service, moment.now)
    return _died(job, f"worker {worker!r} has not been heard of for {moment.workers.dead_ms // 1_000} s", moment)


def _taken_back(job: Job, worker: str, moment: Moment, liveness: Liveness, revision: int) -> Transition | None:
    """The job's way on if its worker is known not to have it; None if it may have it (docs/adr/016)."""
    if liveness.left is not None:
        return requeued(job, moment, reason="deregistered") if revision < liveness.left else None
    said = liveness.complete
    if said is None or job.id in said.jobs:
        return None
    if said.since.follows(job, revision):
        return _died(job, f"the process of worker {worker!r} that had it is gone", moment)
    return requeued(job, moment, reason="not_held") if said.until.follows(job, revision) else None


def _died(job: Job, message: str, moment: Moment) -> Transition:
    return failed(job, server_error(job, "worker_death", message, moment.now), "at_once", moment, "worker_died")
