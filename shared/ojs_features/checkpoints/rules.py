"""Rules of checkpoints: which follows which, and which jobs may have one (ojs-durable-execution)."""

from __future__ import annotations

from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.job import NOTHING, TERMINAL, Job, State
from ojs_engine.domain.transitions.claim import JobHolder, require_holder
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.settle import amended, require

_GOING_ON = tuple(state for state in State if state not in TERMINAL)


class Saved(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is saved, as JSON: any value, and what the SDKs keep beside it, a step's number and an object."""

    state: Raw
    step_index: Whole | None = None
    metadata: Raw = NOTHING
    extensions: Extensions = {}


class CheckpointRecord(Saved, frozen=True, kw_only=True, omit_defaults=True):
    """The last that was saved: its number, when (Unix ms), and the word of the moment of its writing."""

    job_id: str
    sequence: Whole
    at: At
    op: str


def following(old: CheckpointRecord | None, job_id: str, saved: Saved, moment: Moment) -> CheckpointRecord:
    """Return the checkpoint that takes the place of another. The first has the number 1."""
    return CheckpointRecord(
        state=saved.state,
        step_index=saved.step_index,
        metadata=saved.metadata,
        extensions=saved.extensions,
        job_id=job_id,
        sequence=1 if old is None else old.sequence + 1,
        at=moment.now,
        op=moment.op,
    )


def require_checkpointable(job: Job, holder: JobHolder) -> None:
    """Refuse with `conflict` a checkpoint of a job that is over, or by somebody who says to hold it and doesn't.

    The cases of the specification save checkpoints of jobs that nobody has fetched, so that is allowed.
    """
    require(job, "save a checkpoint of", *_GOING_ON)
    if holder != JobHolder():
        require_holder(job, "save a checkpoint of", holder)


def note_checkpoint(job: Job, holder: JobHolder, moment: Moment) -> Transition:
    """Return the job with the note by which its fetches and its end know of the checkpoint.

    Raises as `require_checkpointable`.
    """
    require_checkpointable(job, holder)
    return amended(job, replace(job, checkpoint=True), moment)
