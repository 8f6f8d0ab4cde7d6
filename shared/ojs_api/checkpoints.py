"""Checkpoints of jobs: what a worker saves for the next attempt (docs/checkpoints.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Raw, Struct

from ojs_api.jobs import Checkpoint
from ojs_api.members import (
    MOST_WHOLE,
    AttemptNumber,
    Moment,
    OpenRequest,
    Text,
    Undecoded,
    Uuid,
    wanted,
    whole,
)
from ojs_api.operations import Operation, Subject

MAX_BYTES: Final = 1_048_576
"""Of what is saved, as JSON."""
_NOT_GIVEN: Final[Any] = Raw()
_Sequence = Annotated[int, Meta(extra_json_schema={"minimum": 1}, description="How many checkpoints the job had by then.")]


class SaveCheckpoint(OpenRequest, kw_only=True, omit_defaults=True):
    """What a later attempt can go on from. `worker_id` and `attempt` say who saves it."""

    state: Annotated[
        Undecoded,
        Meta(description=f"Any JSON; with `metadata` up to {MAX_BYTES} bytes."),
        wanted("any JSON, by which another attempt can go on"),
    ]
    step_index: Annotated[int | float, whole(-MOST_WHOLE, MOST_WHOLE)] | None = None
    metadata: Annotated[Undecoded, Meta(extra_json_schema={"type": "object", "additionalProperties": {}})] = _NOT_GIVEN
    worker_id: Text | None = None
    attempt: AttemptNumber | None = None


class CheckpointOfJob(Checkpoint, frozen=True, kw_only=True, omit_defaults=True):
    """The last checkpoint of a job."""

    job_id: Uuid


class NumberedCheckpoint(Struct, frozen=True):
    """Which checkpoint was saved."""

    job_id: Uuid
    sequence: _Sequence
    created_at: Moment


class SavedCheckpoint(NumberedCheckpoint, frozen=True):
    """What was saved. `checkpoint` says the same again, as the specification's text has it."""

    checkpoint: NumberedCheckpoint


class OneCheckpoint(CheckpointOfJob, frozen=True, kw_only=True, omit_defaults=True):
    """The last checkpoint of a job. `checkpoint` is the same again, as the specification's text has it."""

    checkpoint: CheckpointOfJob


class Resume(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether there is something to go on from, as the SDKs ask."""

    job_id: Uuid
    has_checkpoint: bool
    checkpoint: CheckpointOfJob | None = None


class DeletedCheckpoint(Struct, frozen=True, kw_only=True):
    """There is no checkpoint any more; `existed` says whether there was one."""

    deleted: bool
    job_id: Uuid
    existed: bool


_UNKNOWN: Final = ("not_found",)

# fmt: off
SAVE: Final = Operation(
    "putJobCheckpoint", "PUT /jobs/{job_id}/checkpoint", "work", "Save what a later attempt can go on from",
    {200: SavedCheckpoint},
    "In the place of what was saved before. It is given to who fetches the job next.",
    also=(
        "POST /jobs/{job_id}/checkpoint saveJobCheckpoint",
        "POST /checkpoints/{job_id} saveCheckpoint",
        "PUT /checkpoints/{job_id} putCheckpoint",
    ),
    body=SaveCheckpoint, errors=("not_found", "conflict"), narrowing="job", by_queue=True,
)
GET: Final = Operation(
    "getJobCheckpoint", "GET /jobs/{job_id}/checkpoint", "work", "Read what was saved last",
    {200: OneCheckpoint}, also=("GET /checkpoints/{job_id}",), errors=_UNKNOWN, narrowing="job", by_queue=True,
)
RESUME: Final = Operation(
    "resumeCheckpoint", "GET /checkpoints/{job_id}/resume", "work", "Ask whether there is something to go on from",
    {200: Resume}, errors=_UNKNOWN, narrowing="job", by_queue=True,
)
DELETE: Final = Operation(
    "deleteJobCheckpoint", "DELETE /jobs/{job_id}/checkpoint", "work", "Delete what was saved",
    {200: DeletedCheckpoint}, also=("DELETE /checkpoints/{job_id}",), errors=_UNKNOWN, narrowing="job", by_queue=True,
)
CHECKPOINTS: Final = Subject(
    "Checkpoints", "What workers save of jobs, for the next attempt", (SAVE, GET, RESUME, DELETE)
)
