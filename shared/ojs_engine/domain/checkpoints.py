"""What a worker has saved of a job to go on from, should its attempt be lost (ojs-durable-execution, docs/adr/020)."""

from __future__ import annotations

from msgspec import Raw, Struct

from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.job import NOTHING
from ojs_engine.domain.transitions.result import Moment


class Saved(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is saved, as JSON: any value, and what the SDKs keep beside it, a step's number and an object."""

    state: Raw
    step_index: Whole | None = None
    metadata: Raw = NOTHING
    extensions: Extensions = {}


class Checkpoint(Saved, frozen=True, kw_only=True, omit_defaults=True):
    """The last that was saved: the how manieth, when (Unix ms), and the word of the moment of its writing."""

    job_id: str
    sequence: Whole
    at: At
    op: str


def following(old: Checkpoint | None, job_id: str, saved: Saved, moment: Moment) -> Checkpoint:
    """The checkpoint that takes the place of another; the first has the number 1."""
    return Checkpoint(
        state=saved.state,
        step_index=saved.step_index,
        metadata=saved.metadata,
        extensions=saved.extensions,
        job_id=job_id,
        sequence=1 if old is None else old.sequence + 1,
        at=moment.now,
        op=moment.op,
    )
