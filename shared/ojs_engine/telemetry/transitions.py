"""One line in the log for each transition of a job that this process has stored, at `debug` (ojs-logging §5.3, §6.1)."""

from __future__ import annotations

from typing import Any

import structlog

from ojs_engine.domain.events.envelope import trace_id
from ojs_engine.domain.job import Job


def log_transition(job: Job, op: str) -> None:
    """Log the transition `op` of a job that is stored; none of what the job carries, and not why it failed.

    To be called only while `logs.verbosity.debug`: making the line costs more than asking.
    """
    entry = next((entry for entry in reversed(job.transitions) if entry.op == op), None)
    if entry is None:  # the record was written, the job has stayed as it was
        return
    told: dict[str, Any] = {"job_id": job.id, "job_type": job.type, "queue": job.queue, "attempt": entry.attempt}
    if entry.after is not None:
        told["state"] = entry.after
    if entry.worker is not None:
        told["worker_id"] = entry.worker
    if job.workflow is not None:
        told["workflow_id"] = job.workflow.id
    members: dict[str, Any] = {"category": "lifecycle", "ojs": told, "attributes": {"transition": entry.event}}
    trace = trace_id(job.meta)
    if trace is not None:
        members["trace"] = {"trace_id": trace}
    structlog.get_logger(__name__).debug("job transition", **members)
