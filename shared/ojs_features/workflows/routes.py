"""Workflows (docs/workflows.md)."""

from __future__ import annotations

from typing import Final, get_args

from ojs_core.api.common import IDEMPOTENCY_KEY, JOB_ID, OBJECT, PAGED, PUSH_REFUSALS
from ojs_core.api.route import Parameter, Part, Route
from ojs_core.api.schema import TEXT, Named, list_of, one_of, record, whole
from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_features.workflows.answers import OneCancelledWorkflow, OneWorkflow, OneWorkflowProgress, WorkflowPage
from ojs_features.workflows.dialects import SHAPES
from ojs_features.workflows.graph import CALLBACKS, NodeKind
from ojs_features.workflows.handlers import WorkflowHandlers
from ojs_features.workflows.record import WorkflowState

_KIND: Final = one_of(*get_args(NodeKind))
_STATE: Final = one_of(*get_args(WorkflowState), "active", "pending")
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
            "tasks": list_of(OBJECT, 1, DEFAULT_LIMITS.max_workflow_jobs),
            "callbacks": record({}, dict.fromkeys(CALLBACKS, OBJECT)),
            **dict.fromkeys(CALLBACKS, OBJECT),
            "options": OBJECT,
        },
        free=True,
        about="`steps` of a chain, or with `depends_on` and no `type`; `jobs` of a group or batch. A step is a job as it is "
        "pushed, or a workflow. The admin UI says `tasks` for `jobs`, and writes a batch's callbacks beside them.",
    ),
)
_KNOWN: Final = ("not_found", "conflict")

PART: Final = Part(
    "Workflows",
    "Jobs with an order",
    (
        Route(
            WorkflowHandlers,
            WorkflowHandlers.create,
            ("POST /workflows createWorkflow",),
            "enqueue",
            "Create a workflow",
            {201: OneWorkflow},
            "Its first jobs are in their queues when this is answered.",
            body=_REQUEST,
            query=(IDEMPOTENCY_KEY,),
            errors=("invalid_workflow", *PUSH_REFUSALS),
            narrowing="body",
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.list,
            ("GET /workflows listWorkflows",),
            "read",
            "List workflows",
            {200: WorkflowPage},
            "The newest first.",
            query=(Parameter("state", _STATE, "`active` is `running`, and none is ever `pending`."), *PAGED),
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.read,
            ("GET /workflows/{workflow_id} getWorkflow",),
            "read",
            "Read a workflow with its steps",
            {200: OneWorkflow},
            query=(
                Parameter("limit", whole(1, DEFAULT_LIMITS.max_workflow_page), "Steps in the answer."),
                Parameter("offset", whole(0)),
            ),
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.progress,
            ("GET /workflows/{workflow_id}/progress getWorkflowProgress",),
            "read",
            "Read how far a workflow is",
            {200: OneWorkflowProgress},
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.cancel,
            ("DELETE /workflows/{workflow_id} cancelWorkflow", "POST /workflows/{workflow_id}/cancel"),
            "control",
            "Cancel a workflow",
            {200: OneCancelledWorkflow},
            "Jobs that wait are cancelled, active ones may end.",
            errors=_KNOWN,
            narrowing="job",
        ),
        Route(
            WorkflowHandlers,
            WorkflowHandlers.retry,
            ("POST /workflows/{workflow_id}/retry retryWorkflow",),
            "control",
            "Retry a workflow",
            {200: OneWorkflow},
            "It goes on where it failed or was cancelled.",
            errors=_KNOWN,
            narrowing="job",
        ),
    ),
    shapes=SHAPES,
)
