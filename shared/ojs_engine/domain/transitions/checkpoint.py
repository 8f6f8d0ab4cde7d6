"""Noting in a job that it may have a checkpoint."""

from __future__ import annotations

from msgspec.structs import replace

from ojs_engine.domain.job import TERMINAL, Job, State
from ojs_engine.domain.transitions.claim import JobHolder, require_holder
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.settle import amended, require

_GOING_ON = tuple(state for state in State if state not in TERMINAL)


def require_checkpointable(job: Job, holder: JobHolder) -> None:
    """Refuse with `conflict` a checkpoint of a job that is over, or by somebody who says to hold it and doesn't.

    The cases of the specification save checkpoints of jobs that nobody has fetched, so that is allowed.
    """
    require(job, "save a checkpoint of", *_GOING_ON)
    if holder != JobHolder():
        require_holder(job, "save a checkpoint of", holder)


def note_checkpoint(job: Job, holder: JobHolder, moment: Moment) -> Transition:
    """The job with the note by which its fetches, and its end, know of the checkpoint. Raises as `require_checkpointable`."""
    require_checkpointable(job, holder)
    return amended(job, replace(job, checkpoint=True), moment)
