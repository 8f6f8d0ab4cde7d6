"""Checkpoints as workers save them and as clients read them (ojs-durable-execution)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_api.jobs import Checkpoint as JobCheckpoint
from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.extensions import extensions_in
from ojs_engine.base.fields import absent, integer, kind_of, struct_of, value_of
from ojs_engine.base.ids import job_id_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_ms
from ojs_engine.domain.checkpoints import Checkpoint, Saved
from ojs_engine.domain.job import NOTHING
from ojs_engine.domain.transitions import JobHolder
from ojs_engine.wire.jobs.holder import holder_of
from ojs_engine.wire.members import Extended, Timestamp, Uuid, extended

_MOST: Final = 2**53 - 1


class CheckpointBody(Struct):
    state: Raw = NOTHING
    step_index: Any = None
    metadata: Raw = NOTHING
    worker_id: Any = None
    attempt: Any = None


class SaveCheckpoint(Struct, frozen=True):
    """What is to be saved, of which job, and by whom."""

    job_id: str
    saved: Saved
    holder: JobHolder


def parse_checkpoint(body: bytes, limits: PayloadLimits, job_id: str) -> SaveCheckpoint:
    """`state` (any JSON, null included), `step_index`, `metadata` (an object), `worker_id`, `attempt`.

    Raises invalid_request, envelope_too_large.
    """
    sent = struct_of(body, CheckpointBody)
    if not sent.state:
        raise invalid("state", "state is required: any JSON, by which another attempt can go on")
    value_of(sent.state, "state", limits)
    metadata = NOTHING if absent(sent.metadata) else sent.metadata
    if metadata:
        value = value_of(metadata, "metadata", limits)
        if type(value) is not dict:
            raise invalid("metadata", f"metadata must be an object, not {kind_of(value)}")
    size = len(sent.state) + len(metadata)
    if size > limits.max_checkpoint_bytes:
        raise too_large("envelope_too_large", "the checkpoint", size, limits.max_checkpoint_bytes)
    return SaveCheckpoint(
        job_id_of(job_id),
        Saved(
            state=sent.state,
            step_index=None if sent.step_index is None else integer(sent.step_index, "step_index", -_MOST, _MOST),
            metadata=metadata,
            extensions=extensions_in(body, limits),
        ),
        holder_of(sent.worker_id, sent.attempt, limits),
    )


class NumberedCheckpoint(Struct):
    """Which checkpoint was saved."""

    job_id: Uuid
    sequence: Annotated[int, Meta(ge=1, description="The how manieth of the job.")]
    created_at: Timestamp


class SavedCheckpoint(NumberedCheckpoint):
    """What was saved; `checkpoint` says the same again, as the specification's text has it."""

    checkpoint: NumberedCheckpoint


class CheckpointOfJob(JobCheckpoint, frozen=True, kw_only=True, omit_defaults=True):
    """The last checkpoint of a job."""

    job_id: Uuid


class OneCheckpoint(CheckpointOfJob, frozen=True, kw_only=True, omit_defaults=True):
    """The last checkpoint of a job; `checkpoint` is the same again, as the specification's text has it."""

    checkpoint: CheckpointOfJob | Extended[CheckpointOfJob]


class Resume(Struct, kw_only=True, omit_defaults=True):
    """Whether there is something to go on from, as the SDKs ask."""

    job_id: Uuid
    has_checkpoint: bool
    checkpoint: CheckpointOfJob | Extended[CheckpointOfJob] | UnsetType = UNSET


class DeletedCheckpoint(Struct):
    """There is no checkpoint any more; `existed` says whether there was one."""

    deleted: bool
    job_id: Uuid
    existed: bool


def job_checkpoint(checkpoint: Checkpoint) -> JobCheckpoint | Extended[JobCheckpoint]:
    """The checkpoint in a job that is handed out."""
    return extended(JobCheckpoint(**_members(checkpoint)), checkpoint.extensions)


def _members(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "state": checkpoint.state,
        "sequence": checkpoint.sequence,
        "created_at": format_ms(checkpoint.at),
        "step_index": checkpoint.step_index,
        "metadata": checkpoint.metadata or {},
    }


def saved_checkpoint(checkpoint: Checkpoint) -> SavedCheckpoint:
    """The answer to who saves."""
    named = checkpoint.job_id, checkpoint.sequence, format_ms(checkpoint.at)
    return SavedCheckpoint(*named, NumberedCheckpoint(*named))


def one_checkpoint(checkpoint: Checkpoint) -> OneCheckpoint | Extended[OneCheckpoint]:
    """The answer to who reads."""
    answer = OneCheckpoint(job_id=checkpoint.job_id, checkpoint=_answer(checkpoint), **_members(checkpoint))
    return extended(answer, checkpoint.extensions)


def _answer(checkpoint: Checkpoint) -> CheckpointOfJob | Extended[CheckpointOfJob]:
    return extended(CheckpointOfJob(job_id=checkpoint.job_id, **_members(checkpoint)), checkpoint.extensions)


def resume(job_id: str, checkpoint: Checkpoint | None) -> Resume:
    """The answer to an SDK that begins an attempt."""
    if checkpoint is None:
        return Resume(job_id=job_id, has_checkpoint=False)
    return Resume(job_id=job_id, has_checkpoint=True, checkpoint=_answer(checkpoint))
