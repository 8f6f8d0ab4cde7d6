"""Workflows (docs/workflows.md)."""

from __future__ import annotations

from typing import Any, Final, get_args

from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.domain.workflows.graph import CALLBACKS, NodeKind
from ojs_core.domain.workflows.record import WorkflowState
from ojs_core.wire.job import FailedAttempt
from ojs_gateway.handlers.workflows import WorkflowHandlers
from ojs_gateway.openapi.common import COUNT, JOB_ID, OBJECT, PAGED, STATE, page_of
from ojs_gateway.openapi.envelope import PUSH_REFUSALS
from ojs_gateway.openapi.route import Parameter, Part, Route
from ojs_gateway.openapi.schema import (
    ANYTHING,
    FLAG,
    TEXT,
    TIME,
    Named,
    Schema,
    list_of,
    map_of,
    number,
    one_of,
    record,
    whole,
)

_KIND: Final = one_of(*get_args(NodeKind))
_STATE: Final = one_of(*get_args(WorkflowState))
_STEP_STATE: Final = one_of("waiting", "pending", "active", "running", "completed", "failed", "cancelled")
_TIMES: Final[dict[str, Schema]] = dict.fromkeys(("started_at", "completed_at", "cancelled_at"), TIME)
_STEP: Final[dict[str, Any]] = {}
_STEPS: Final = list_of(Named("WorkflowStep", _STEP))
_LISTS: Final[dict[str, Schema]] = {
    "steps": _STEPS,
    "jobs": _STEPS,
    "callbacks": map_of(Named("WorkflowStep", _STEP), "By role, or by id where a role has several."),
}
_STEP.update(
    record(
        {
            "id": TEXT,
            "index": COUNT,
            "type": TEXT,
            "state": _STEP_STATE,
            "depends_on": list_of(TEXT),
        },
        {
            "job_id": JOB_ID,
            "job_ids": list_of(JOB_ID),
            "job_state": STATE,
            "started_at": TIME,
            "completed_at": TIME,
            "result": ANYTHING,
            "error": FailedAttempt,
            "name": TEXT,
            "steps_total": COUNT,
            "steps_completed": COUNT,
            **_LISTS,
        },
        about="A job, or a workflow with steps of its own.",
    )
)
_LISTED: Final[dict[str, Schema]] = {
    "id": JOB_ID,
    "type": _KIND,
    "name": TEXT,
    "state": _STATE,
    "created_at": TIME,
    **dict.fromkeys(("steps_total", "steps_completed", "step_count"), COUNT),
}
_ROOT: Final[dict[str, Schema]] = {
    **_LISTED,
    **dict.fromkeys(("jobs_total", "jobs_completed"), COUNT),
    "metadata": record(
        {"created_at": TIME, **dict.fromkeys(("job_count", "completed_count", "failed_count", "cancelled_count"), COUNT)},
        _TIMES,
    ),
}
_ROOT_OPTIONAL: Final[dict[str, Schema]] = {
    **_TIMES,
    "retries": whole(1),
    "errors": list_of(
        record(
            {"job_id": JOB_ID, "step_id": TEXT, "code": TEXT, "message": TEXT, "attempt": COUNT, "occurred_at": TIME},
            {"callback": one_of(*CALLBACKS)},
        )
    ),
    "failed_job_ids": list_of(JOB_ID),
    "failed_step_index": COUNT,
    "failed_step_id": TEXT,
}
_PAGE: Final = record({"total": COUNT, "offset": COUNT, "limit": COUNT, "has_more": FLAG})


def _wrapped(required: dict[str, Schema], optional: dict[str, Schema]) -> dict[str, Any]:
    """The members stand inside `workflow`, and beside it for clients that don't unwrap."""
    return record({"workflow": record(required, optional), **required}, optional)


_WHOLE: Final = Named(
    "Workflow",
    _wrapped({**_ROOT, "steps": _STEPS}, {**_ROOT_OPTIONAL, **_LISTS, "steps_pagination": _PAGE}),
)
_REQUEST: Final = Named(
    "WorkflowRequest",
    record(
        {},
        {
            "type": _KIND,
            "id": JOB_ID,
            "name": TEXT,
            "steps": list_of(OBJECT, 1, DEFAULT_LIMITS.max_workflow_jobs),
            "jobs": list_of(OBJECT, 1, DEFAULT_LIMITS.max_workflow_jobs),
            "callbacks": record({}, dict.fromkeys(CALLBACKS, OBJECT)),
            "options": OBJECT,
        },
        free=True,
        about="`steps` of a chain, or with `depends_on` and no `type`; `jobs` of a group or batch. A step is a job as it is "
        "pushed, or a workflow.",
    ),
)
_KNOWN: Final = ("not_found", "conflict")

WORKFLOWS: Final = Part(
    "Workflows",
    "Jobs with an order",
    (
        Route(
            WorkflowHandlers,
            WorkflowHandlers.create,
            ("POST /workflows createWorkflow",),
            "Create a workflow",
            {201: _WHOLE},
            "Its first jobs are in their queues when this is answered.",
            body=_REQUEST,
            errors=("invalid_workflow", *PUSH_REFUSALS),
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.list,
            ("GET /workflows listWorkflows",),
            "List workflows",
            {200: page_of(record(_LISTED, _TIMES), "workflows", "items", total=COUNT)},
            "The newest first.",
            query=(Parameter("state", _STATE), *PAGED),
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.read,
            ("GET /workflows/{workflow_id} getWorkflow",),
            "Read a workflow with its steps",
            {200: _WHOLE},
            query=(
                Parameter("limit", whole(1, DEFAULT_LIMITS.max_workflow_page), "Steps in the answer."),
                Parameter("offset", whole(0)),
            ),
            errors=("not_found",),
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.progress,
            ("GET /workflows/{workflow_id}/progress getWorkflowProgress",),
            "Read how far a workflow is",
            {
                200: _wrapped(
                    {
                        **dict.fromkeys(("id", "workflow_id"), JOB_ID),
                        "name": TEXT,
                        "type": _KIND,
                        "state": _STATE,
                        **dict.fromkeys(
                            (
                                "steps_total",
                                "steps_completed",
                                "jobs_total",
                                "jobs_completed",
                                "jobs_failed",
                                "jobs_cancelled",
                            ),
                            COUNT,
                        ),
                        "progress": number(0, 1),
                        "progress_percent": number(0, 100),
                        "steps": list_of(record({"id": TEXT, "state": _STEP_STATE, "progress": number(0, 1)})),
                    },
                    {},
                )
            },
            errors=("not_found",),
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.cancel,
            ("DELETE /workflows/{workflow_id} cancelWorkflow", "POST /workflows/{workflow_id}/cancel"),
            "Cancel a workflow",
            {
                200: _wrapped(
                    {**_ROOT, **dict.fromkeys(("steps_cancelled", "cancelled_steps", "steps_already_completed"), COUNT)},
                    _ROOT_OPTIONAL,
                )
            },
            "Jobs that wait are cancelled, active ones may end.",
            errors=_KNOWN,
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.retry,
            ("POST /workflows/{workflow_id}/retry retryWorkflow",),
            "Retry a workflow",
            {200: _WHOLE},
            "It goes on where it failed or was cancelled.",
            errors=_KNOWN,
        ),
    ),
)
