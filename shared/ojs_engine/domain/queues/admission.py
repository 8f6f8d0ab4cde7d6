"""What a queue's settings mean for a job that is about to be pushed. Jobs that are there already keep what they came with."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import SYSTEM_RETRY, Job
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.domain.queues.record import QueueState
from ojs_engine.domain.strict import type_matches


class QueueSettings(Struct, frozen=True):
    """How a queue stands: its state, and its configuration with that of `_default` below."""

    state: QueueState
    config: QueueConfig


def admitted(draft: Job, settings: QueueSettings) -> Job:
    """The draft with what it leaves to its queue filled in.

    Raises job_type_not_allowed, queue_draining, and queue_paused if the queue refuses jobs while it is paused.
    """
    config = settings.config
    if settings.state == "draining":
        message = f"queue {draft.queue!r} is draining and takes no new jobs"
        raise OjsError("queue_draining", message, details={"queue": draft.queue})
    if settings.state == "paused" and config.strict_pause:
        raise OjsError("queue_paused", f"queue {draft.queue!r} is paused", details={"queue": draft.queue}, retry_after=5)
    if config.allowed_job_types is not None and not type_matches(draft.type, config.allowed_job_types):
        listed = ", ".join(config.allowed_job_types) or "none"
        raise OjsError(
            "job_type_not_allowed",
            f"queue {draft.queue!r} takes no jobs of type {draft.type!r}; allowed: {listed}",
            details={"queue": draft.queue, "type": draft.type, "allowed_job_types": config.allowed_job_types},
        )
    changes: dict[str, Any] = {}
    if config.default_timeout_ms is not None and draft.timeout_ms is None:
        changes["timeout_ms"] = config.default_timeout_ms
    if config.visibility_timeout_ms is not None and draft.visibility_timeout_ms is None:
        changes["visibility_timeout_ms"] = config.visibility_timeout_ms
    if config.default_retry is not None and draft.retry is SYSTEM_RETRY:
        changes["retry"] = config.default_retry
    if config.retention is not None:
        changes["retention"] = config.retention
    return replace(draft, **changes) if changes else draft
