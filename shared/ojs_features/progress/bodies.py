"""Progress as workers report it and as clients read it (ojs-progress)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw, Struct

from ojs_api.progress import MAX_DATA_BYTES, Progress, ReportedProgress, ReportProgress
from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.fields import absent, kind_of, value_of
from ojs_engine.base.ids import job_id_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions import JobHolder
from ojs_engine.wire.jobs.holder import holder_of
from ojs_engine.wire.members import moment, written
from ojs_engine.wire.requests import request_of
from ojs_features.progress.rules import ProgressRecord, Report

_WHOLE: Final = 100.0
"""Percent."""


class ProgressReport(Struct, frozen=True):
    """A report, of which job, and by whom."""

    job_id: str
    report: Report
    holder: JobHolder


def parse_progress(body: bytes, limits: PayloadLimits, job_id: str | None) -> ProgressReport:
    """Return what a request reports. `job_id` is the path's; without one the body names the job.

    Numbers beyond their range are taken for its ends (§5.1). Raises OjsError invalid_payload, invalid_request,
    metadata_too_large, `unsupported`.
    """
    sent = request_of(body, ReportProgress)
    named = sent.job_id if job_id is None else job_id
    if named is None:
        raise invalid("job_id", "job_id is required: the id of a fetched job")
    fraction = _fraction(sent.progress, 1.0)
    if fraction is None:
        fraction = _fraction(sent.percentage, _WHOLE)
    data = NOTHING if absent(sent.data) else _data(sent.data, limits)
    if fraction is None and not data:
        raise invalid("progress", "progress (0 to 1), percentage (0 to 100) or data is required")
    return ProgressReport(
        job_id_of(named),
        Report(fraction=fraction, message=sent.message, data=data),
        holder_of(sent.worker_id, sent.attempt, limits),
    )


def _fraction(value: float | None, whole: float) -> float | None:
    return None if value is None else float(min(max(value, 0), whole) / whole)


def _data(raw: Raw, limits: PayloadLimits) -> Raw:
    value = value_of(raw, "data", limits)
    if type(value) is not dict:
        raise invalid("data", f"data must be an object, not {kind_of(value)}")
    if len(raw) > MAX_DATA_BYTES:
        raise too_large("metadata_too_large", "data", len(raw), MAX_DATA_BYTES)
    return raw


def progress_answer(job: Job, record: ProgressRecord | None) -> Progress:
    """Make the answer to who asks."""
    return Progress(**_members(job, record))


def reported_progress(job: Job, record: ProgressRecord | None, *, accepted: bool) -> ReportedProgress:
    """Make the answer to the worker."""
    return ReportedProgress(accepted=accepted, **_members(job, record))


def _members(job: Job, record: ProgressRecord | None) -> dict[str, Any]:
    fraction = None if record is None else record.fraction
    return {
        "job_id": job.id,
        "state": job.state,
        "attempt": job.attempt,
        "progress": fraction,
        "data": None if record is None or not record.data else written(record.data),
        "updated_at": None if record is None else moment(record.at),
        "percentage": None if fraction is None else round(fraction * _WHOLE, 4),
        "message": None if record is None else record.message,
    }


def progress_event(job: Job, progress: ProgressRecord) -> dict[str, Any]:
    """Return the data of `job.progress` (ojs-events)."""
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
    """Return an answer as one server-sent event: `progress` while the job goes on, else what has become of it (§7.2).

    A browser's EventSource hands those without a name to `onmessage`.
    """
    ended = {State.COMPLETED: "completed", State.CANCELLED: "cancelled", State.DISCARDED: "failed"}
    name = f"event: {ended.get(job.state, 'progress')}\n" if named else ""
    return name.encode() + b"data: " + body + b"\n\n"
