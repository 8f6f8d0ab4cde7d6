"""Progress as workers report it and as clients read it (ojs-progress)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_engine.base.errors import OjsError, invalid, too_large
from ojs_engine.base.fields import absent, kind_of, shown, struct_of, value_of
from ojs_engine.base.ids import job_id_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.progress import Fraction, Progress, Report
from ojs_engine.domain.transitions import JobHolder
from ojs_engine.wire.jobs.holder import holder_of
from ojs_engine.wire.members import JsonObject, Timestamp, Uuid

_WHOLE: Final = 100.0
"""Percent."""
MAX_MESSAGE: Final = 1_024


class ProgressBody(Struct):
    job_id: str | None = None
    progress: Any = None
    percentage: Any = None
    message: Any = None
    data: Raw = NOTHING
    checkpoint: Raw = NOTHING
    worker_id: Any = None
    attempt: Any = None


class ProgressReport(Struct, frozen=True):
    """A report, of which job, and by whom."""

    job_id: str
    report: Report
    holder: JobHolder


def parse_progress(body: bytes, limits: PayloadLimits, job_id: str | None) -> ProgressReport:
    """PUT /jobs/{id}/progress, POST /workers/progress: `progress` from 0 to 1 or `percentage` from 0 to 100, `data`, `message`.

    `job_id` is the path's; without one the body names the job. Numbers beyond their range are taken for its ends (§5.1). Raises
    invalid_request, metadata_too_large, unsupported for a checkpoint.
    """
    sent = struct_of(body, ProgressBody)
    if job_id is None:
        if sent.job_id is None:
            raise invalid("job_id", "job_id is required: the id of a fetched job")
        job_id = sent.job_id
    if sent.checkpoint and not absent(sent.checkpoint):
        raise OjsError("unsupported", "checkpoint is not taken with progress; leave it out", details={"field": "checkpoint"})
    fraction = _fraction(sent.progress, "progress", 1.0)
    if fraction is None:
        fraction = _fraction(sent.percentage, "percentage", _WHOLE)
    data = NOTHING if absent(sent.data) else _data(sent.data, limits)
    if fraction is None and not data:
        raise invalid("progress", "progress (0 to 1), percentage (0 to 100) or data is required")
    return ProgressReport(
        job_id_of(job_id),
        Report(fraction=fraction, message=_message(sent.message), data=data),
        holder_of(sent.worker_id, sent.attempt, limits),
    )


def _fraction(value: Any, field: str, whole: float) -> float | None:
    if value is None:
        return None
    if type(value) not in {int, float}:
        raise invalid(field, f"{field} must be a number from 0 to {whole:.0f}, not {shown(value)}")
    return float(min(max(value, 0), whole) / whole)


def _message(value: Any) -> str | None:
    if value is None:
        return None
    if type(value) is not str or len(value) > MAX_MESSAGE:
        raise invalid("message", f"message must be a text of up to {MAX_MESSAGE} characters, not {shown(value)}")
    return value


def _data(raw: Raw, limits: PayloadLimits) -> Raw:
    value = value_of(raw, "data", limits)
    if type(value) is not dict:
        raise invalid("data", f"data must be an object, not {kind_of(value)}")
    if len(raw) > limits.max_progress_bytes:
        raise too_large("metadata_too_large", "data", len(raw), limits.max_progress_bytes)
    return raw


class ProgressAnswer(Struct, kw_only=True, omit_defaults=True):
    """How far a job has come; nulls if its attempt has told of nothing (ojs-progress §7.1)."""

    job_id: Uuid
    state: State
    attempt: Annotated[int, Meta(ge=0, description="Which attempt this is about.")]
    progress: Annotated[Fraction, Meta(description="From 0 to 1.")] | None
    percentage: Annotated[float, Meta(ge=0, le=100, description="The same from 0 to 100.")] | UnsetType = UNSET
    data: JsonObject | None
    message: str | UnsetType = UNSET
    updated_at: Timestamp | None


class ReportedProgress(ProgressAnswer, kw_only=True, omit_defaults=True):
    """What stands after a report."""

    accepted: Annotated[bool, Meta(description="Whether the report is about the running attempt; if not, it was passed over.")]


def _told(job: Job, progress: Progress | None) -> dict[str, Any]:
    """The members of `ProgressAnswer`."""
    fraction = None if progress is None else progress.fraction
    return {
        "job_id": job.id,
        "state": job.state,
        "attempt": job.attempt,
        "progress": fraction,
        "percentage": UNSET if fraction is None else round(fraction * _WHOLE, 4),
        "data": None if progress is None or not progress.data else progress.data,
        "message": UNSET if progress is None or progress.message is None else progress.message,
        "updated_at": None if progress is None else format_ms(progress.at),
    }


def progress_answer(job: Job, progress: Progress | None) -> ProgressAnswer:
    """The answer to who asks."""
    return ProgressAnswer(**_told(job, progress))


def reported_progress(job: Job, progress: Progress | None, *, accepted: bool) -> ReportedProgress:
    """The answer to the worker."""
    return ReportedProgress(accepted=accepted, **_told(job, progress))


def progress_event(job: Job, progress: Progress) -> dict[str, Any]:
    """The data of `job.progress` (ojs-events)."""
    told: dict[str, Any] = {"job_id": job.id, "job_type": job.type, "queue": job.queue, "attempt": job.attempt}
    if job.worker is not None:
        told["worker_id"] = job.worker
    if progress.fraction is not None:
        told |= {"progress": progress.fraction, "progress_percent": round(progress.fraction * _WHOLE, 4)}
    if progress.message is not None:
        told |= dict.fromkeys(("progress_message", "message"), progress.message)  # ojs-events, ojs-realtime §4.2
    if progress.data:
        told["data"] = progress.data
    return told


def progress_frame(body: bytes, job: Job, *, named: bool) -> bytes:
    """A progress answer as one server-sent event: `progress` while the job goes on, else what has become of it (§7.2).

    A browser's EventSource hands those without a name to `onmessage`.
    """
    ended = {State.COMPLETED: "completed", State.CANCELLED: "cancelled", State.DISCARDED: "failed"}
    name = f"event: {ended.get(job.state, 'progress')}\n" if named else ""
    return name.encode() + b"data: " + body + b"\n\n"
