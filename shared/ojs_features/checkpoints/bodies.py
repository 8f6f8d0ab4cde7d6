"""Checkpoints as workers save them and as clients read them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ojs_api import checkpoints as contract
from ojs_api.checkpoints import MAX_BYTES, CheckpointOfJob, NumberedCheckpoint, OneCheckpoint, Resume, SavedCheckpoint
from ojs_api.jobs import Checkpoint
from ojs_api.members import MOST_WHOLE
from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.extensions import extensions_in
from ojs_engine.base.fields import absent, integer, kind_of, value_of
from ojs_engine.base.ids import job_id_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import NOTHING
from ojs_engine.domain.transitions import JobHolder
from ojs_engine.wire.jobs.holder import holder_of
from ojs_engine.wire.members import extended, moment, written
from ojs_engine.wire.requests import request_of
from ojs_features.checkpoints.rules import CheckpointRecord, Saved


class SaveCheckpoint(Struct, frozen=True):
    """What is to be saved, of which job, and by whom."""

    job_id: str
    saved: Saved
    holder: JobHolder


def parse_checkpoint(body: bytes, limits: PayloadLimits, job_id: str) -> SaveCheckpoint:
    """Return what a request saves. The state may be null.

    Raises OjsError invalid_payload, invalid_request, envelope_too_large.
    """
    sent = request_of(body, contract.SaveCheckpoint)
    value_of(sent.state, "state", limits)
    metadata = NOTHING if absent(sent.metadata) else sent.metadata
    if metadata and type(value := value_of(metadata, "metadata", limits)) is not dict:
        raise invalid("metadata", f"metadata must be an object, not {kind_of(value)}")
    size = len(sent.state) + len(metadata)
    if size > MAX_BYTES:
        raise too_large("envelope_too_large", "the checkpoint", size, MAX_BYTES)
    step = sent.step_index
    return SaveCheckpoint(
        job_id_of(job_id),
        Saved(
            state=sent.state,
            step_index=None if step is None else integer(step, "step_index", -MOST_WHOLE, MOST_WHOLE),
            metadata=metadata,
            extensions=extensions_in(body, limits),
        ),
        holder_of(sent.worker_id, sent.attempt, limits),
    )


def checkpoint_in_job(record: CheckpointRecord) -> Checkpoint:
    """Make the member of a job that is handed out."""
    whole: Checkpoint = written(extended(Checkpoint(**_members(record)), record.extensions))
    return whole


def checkpoint_answer(record: CheckpointRecord) -> CheckpointOfJob:
    """Make the checkpoint in an answer that isn't the job's."""
    answer = CheckpointOfJob(job_id=record.job_id, **_members(record))
    whole: CheckpointOfJob = written(extended(answer, record.extensions))
    return whole


def one_checkpoint(record: CheckpointRecord) -> OneCheckpoint:
    """Make the answer to who reads it."""
    answer = OneCheckpoint(job_id=record.job_id, checkpoint=checkpoint_answer(record), **_members(record))
    whole: OneCheckpoint = written(extended(answer, record.extensions))
    return whole


def saved_checkpoint(record: CheckpointRecord) -> SavedCheckpoint:
    """Make the answer to who saves it."""
    named = record.job_id, record.sequence, moment(record.at)
    return SavedCheckpoint(*named, NumberedCheckpoint(*named))


def resume(job_id: str, record: CheckpointRecord | None) -> Resume:
    """Make the answer to an SDK that begins an attempt."""
    found = None if record is None else checkpoint_answer(record)
    return Resume(job_id=job_id, has_checkpoint=record is not None, checkpoint=found)


def _members(record: CheckpointRecord) -> dict[str, Any]:
    return {
        "state": written(record.state),
        "sequence": record.sequence,
        "created_at": moment(record.at),
        "metadata": written(record.metadata) if record.metadata else {},
        "step_index": record.step_index,
    }
