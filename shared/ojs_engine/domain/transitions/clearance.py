"""What clearing or bounding a queue does to its jobs: they are dropped, moved or removed (ojs-queue-config §5.3, §6.1)."""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from ojs_engine.domain.job import TERMINAL, Job, State
from ojs_engine.domain.transitions.failure import recorded
from ojs_engine.domain.transitions.limits import server_error
from ojs_engine.domain.transitions.log import leading_to
from ojs_engine.domain.transitions.manual import tombstone
from ojs_engine.domain.transitions.outcome import discarded
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.settle import conclude, entered, made_available, require

Clearance = Literal["queue_deleted", "overflow", "rate_limited"]

WAITING: Final = (State.AVAILABLE, State.SCHEDULED, State.RETRYABLE, State.PENDING)
_WORDS: Final[dict[Clearance, str]] = {
    "queue_deleted": "the job's queue was deleted",
    "overflow": "the job made room for a newer one in a full queue",
    "rate_limited": "the job's rate limit was reached, and it asked to be dropped then",
}


def drop(job: Job, kind: Clearance, moment: Moment) -> Transition:
    """Discard a waiting job; never a dead letter. Raises `conflict` if it is active or at its end."""
    require(job, "drop", *WAITING)
    error = server_error(job, kind, _WORDS[kind], moment.now, retryable=False)
    return conclude(job, discarded(recorded(job, error), moment), moment, "dropped", reason=kind)


def postpone(job: Job, at: int, moment: Moment) -> Transition:
    """Make an available job wait for a later time (Unix ms). Raises `conflict` if it isn't available."""
    require(job, "postpone", State.AVAILABLE)
    return conclude(job, entered(job, State.SCHEDULED, scheduled_at=at, verbatim=_unwritten(job)), moment, "postponed")


def _unwritten(job: Job) -> dict[str, str]:
    return {name: text for name, text in job.verbatim.items() if name != "scheduled_at"}


def move(job: Job, queue: str, moment: Moment) -> Transition:
    """Put a waiting job into another queue, at its end if it is available. Raises `conflict` as `drop` does."""
    require(job, "move", *WAITING)
    moved = replace(job, queue=queue, transitions=leading_to(queue, job))
    new = made_available(moved, moment) if job.state is State.AVAILABLE else moved
    return conclude(job, new, moment, "moved", reason=job.queue)


def remove(job: Job, moment: Moment) -> Transition:
    """Remove a finished job before its time; what stays guards its id for an hour. Raises `conflict` if it isn't finished."""
    require(job, "remove", *TERMINAL)
    return conclude(job, tombstone(job), moment, "deleted" if job.dead_letter else "removed")
