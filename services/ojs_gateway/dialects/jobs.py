"""Jobs and what workers are answered, for official clients."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ojs_api.jobs import AdminChangedJob, EnqueuedJob, JobPage, OneJob, PushedJob
from ojs_api.work import AckAnswer, NackAnswer
from ojs_engine.domain.members import PRINTED
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import members
from ojs_index.lists.jobs import BareJobDetail

_TIMESTAMPS: Final = (
    "created_at",
    "enqueued_at",
    "started_at",
    "scheduled_at",
    "completed_at",
    "cancelled_at",
    "discarded_at",
)


def _flat(answer: OneJob | PushedJob | AdminChangedJob) -> dict[str, Any]:
    """The job's members stand beside `job`, too: the command line and the admin UI do not unwrap."""
    return members(answer.job) | members(answer)


def _with_total(answer: JobPage) -> dict[str, Any]:
    view = members(answer)
    return view if answer.pagination.total is None else view | {"total": answer.pagination.total}


def _with_attempts(answer: JobPage) -> dict[str, Any]:
    """The JavaScript SDK reads how often a dead letter was tried under another name."""
    jobs = [members(job) for job in answer.jobs]
    return members(answer) | {"jobs": [job | {"total_attempts": job["attempt"]} for job in jobs]}


def _with_job_id(answer: AckAnswer | NackAnswer) -> dict[str, Any]:
    return members(answer) | {"job_id": answer.id}


def _bare(answer: BareJobDetail) -> Any:
    return answer.job


def _bare_for_cli(answer: BareJobDetail) -> dict[str, Any]:
    """The command line prints what was asked for as `options`."""
    view = members(answer.job)
    return view | {"options": {name: view[name] for name in PRINTED if name in view}}


def _bare_for_ui(answer: BareJobDetail) -> dict[str, Any]:
    """`metadata` has the job's times; what ojs-admin-api §7.2 shows as null is null."""
    view = members(answer.job)
    sent: Any = msgspec.json.decode(view["metadata"]) if "metadata" in view else None
    times = {name: view.get(name) for name in _TIMESTAMPS}
    return view | {"retry_policy": view["retry"], "metadata": (sent if isinstance(sent, dict) else {}) | times}


JOBS: Final[Shapes] = {
    BareJobDetail: {"standard": _bare, "sdk": _bare, "cli": _bare_for_cli, "ui": _bare_for_ui},
    AdminChangedJob: {"cli": _flat, "ui": _flat},
    JobPage: {"sdk": _with_attempts, "cli": _with_total},
    OneJob: {"cli": _flat},
    EnqueuedJob: {"cli": _flat},
    PushedJob: {"cli": _flat},
    AckAnswer: {"sdk": _with_job_id},
    NackAnswer: {"sdk": _with_job_id},
}
