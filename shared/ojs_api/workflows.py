"""Workflows: jobs with an order (docs/workflows.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from ojs_api.jobs import JobError
from ojs_api.members import Count, Moment, OpenAnswer, OpenRequest, Undecoded, Uuid, Warnings, one_of
from ojs_api.operations import IDEMPOTENCY_KEY, PUSH_REFUSALS, Operation, Parameter, Subject
from ojs_api.pages import PAGED, Indexed, Pagination
from ojs_api.words import JobState, WorkflowState

NodeKind = Literal["chain", "group", "batch", "dag"]
Role = Literal["on_complete", "on_success", "on_failure"]
"""The ends of a batch or graph that a callback is called for."""
StepState = Literal["waiting", "pending", "active", "running", "completed", "failed", "cancelled"]
MAX_JOBS: Final = 10_000
"""Jobs in one workflow, nested ones and callbacks included."""
MAX_STEPS: Final = 1_000
"""Steps in one answer; larger workflows are read by pages."""
MAX_PROGRESS_STEPS: Final = 200
"""Direct steps in the answer about progress."""

_Asked = Literal[WorkflowState, "active", "pending"]
_Object = Annotated[dict[str, Undecoded], Meta(extra_json_schema={"type": "object", "additionalProperties": {}})]
_Objects = Annotated[list[_Object], Meta(min_length=1, max_length=MAX_JOBS)]
_Fraction = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
_AtLeastOne = Annotated[int, Meta(extra_json_schema={"minimum": 1})]


class Callbacks(Struct, kw_only=True):
    """The jobs that a batch calls back."""

    on_complete: _Object | None = None
    on_success: _Object | None = None
    on_failure: _Object | None = None


class WorkflowRequest(OpenRequest, kw_only=True):
    """`steps` of a chain, or with `depends_on` and no `type`; `jobs` of a group or batch. A step is a job as it is
    pushed, or a workflow. The admin UI says `tasks` for `jobs`, and writes a batch's callbacks beside them.
    """

    type: NodeKind | None = None
    id: Uuid | None = None
    name: str | None = None
    steps: _Objects | None = None
    jobs: _Objects | None = None
    tasks: _Objects | None = None
    callbacks: Callbacks | None = None
    on_complete: _Object | None = None
    on_success: _Object | None = None
    on_failure: _Object | None = None
    options: _Object | None = None


class MemberCounts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of what has members: those of a chain or DAG are counted as steps, those of a group or batch as jobs."""

    steps_total: Count | None = None
    steps_completed: Count | None = None
    jobs_total: Count | None = None
    jobs_completed: Count | None = None


class WorkflowHead(MemberCounts, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow without its steps."""

    id: Uuid
    type: Annotated[str, one_of(NodeKind)]
    name: str
    state: Annotated[str, one_of(WorkflowState)]
    created_at: Moment
    started_at: Moment | None = None
    completed_at: Moment | None = None
    cancelled_at: Moment | None = None


class WorkflowMetadata(Struct, frozen=True, kw_only=True):
    """How many jobs there are, those of nested workflows included, and what has become of them. Callbacks don't count."""

    job_count: Count
    completed_count: Count
    failed_count: Count
    cancelled_count: Count


class WorkflowError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a job of the workflow counts as failed.

    Attributes:
        callback: The name of the callback, if the job is one.
    """

    job_id: Uuid
    step_id: str
    code: str
    message: str
    attempt: Count
    occurred_at: Moment
    callback: Annotated[str, one_of(Role)] | None = None


class WorkflowStep(MemberCounts, OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """A job, or a workflow with steps of its own.

    Attributes:
        index: The position of the step, from 0.
        depends_on: The ids of the steps that have to complete before it.
    """

    id: str
    index: Count
    type: str
    state: Annotated[str, one_of(StepState)]
    depends_on: list[str]
    job_id: Uuid | None = None
    job_state: Annotated[str, one_of(JobState)] | None = None
    started_at: Moment | None = None
    completed_at: Moment | None = None
    result: Any = None
    error: JobError | None = None
    name: str | None = None
    steps: list[WorkflowStep] = []
    callbacks: dict[str, WorkflowStep] = {}


class StepsPagination(Struct, frozen=True, kw_only=True):
    """The part of the outermost steps that is shown, when not all are."""

    total: Count
    offset: Count
    limit: Count
    has_more: bool


class WorkflowOutcome(WorkflowHead, OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """The base of a workflow with what has become of it."""

    metadata: WorkflowMetadata
    retries: _AtLeastOne | None = None
    errors: list[WorkflowError] = []
    failed_step_index: Count | None = None
    failed_step_id: str | None = None


class Workflow(WorkflowOutcome, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow with its steps."""

    steps: list[WorkflowStep]
    callbacks: Annotated[dict[str, WorkflowStep], Meta(description="By role, or by id where a role has several.")] = {}
    steps_pagination: StepsPagination | None = None


class CancelledWorkflow(WorkflowOutcome, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow after its cancellation."""

    steps_cancelled: Count
    steps_already_completed: Count


class StepProgress(Struct, frozen=True, kw_only=True):
    """How far a direct step is, from 0 to 1."""

    id: str
    state: Annotated[str, one_of(StepState)]
    progress: _Fraction


class WorkflowProgress(WorkflowHead, frozen=True, kw_only=True, omit_defaults=True):
    """How far a workflow is, from 0 to 1, with the first of its direct steps."""

    metadata: WorkflowMetadata
    progress: _Fraction
    steps: Annotated[list[StepProgress], Meta(extra_json_schema={"maxItems": MAX_PROGRESS_STEPS})]


class OneWorkflow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer about one workflow."""

    workflow: Workflow
    warnings: Warnings | None = None


class OneCancelledWorkflow(Struct, frozen=True):
    """The answer to a cancellation."""

    workflow: CancelledWorkflow


class OneWorkflowProgress(Struct, frozen=True):
    """The answer in numbers."""

    workflow: WorkflowProgress


class WorkflowPage(Indexed, frozen=True, kw_only=True, omit_defaults=True):
    """A page of the list of workflows."""

    workflows: list[WorkflowHead]
    pagination: Pagination


_UNKNOWN: Final = ("not_found",)
_CHANGED: Final = ("not_found", "conflict")

# fmt: off
CREATE: Final = Operation(
    "createWorkflow", "POST /workflows", "enqueue", "Create a workflow",
    {201: OneWorkflow}, "Its first jobs are in their queues when this is answered.",
    body=WorkflowRequest, query=(IDEMPOTENCY_KEY,), errors=("invalid_workflow", *PUSH_REFUSALS),
    narrowing="body",
)
LIST: Final = Operation(
    "listWorkflows", "GET /workflows", "read", "List workflows",
    {200: WorkflowPage}, "The newest first.",
    query=(Parameter("state", _Asked, "`active` is `running`, and none is ever `pending`."), *PAGED),
)
GET: Final = Operation(
    "getWorkflow", "GET /workflows/{workflow_id}", "read", "Read a workflow with its steps",
    {200: OneWorkflow},
    query=(
        Parameter("limit", Annotated[int, Meta(ge=1, le=MAX_STEPS)], "Steps in the answer."),
        Parameter("offset", Annotated[int, Meta(ge=0)]),
    ),
    errors=_UNKNOWN, narrowing="job",
)
PROGRESS: Final = Operation(
    "getWorkflowProgress", "GET /workflows/{workflow_id}/progress", "read", "Read how far a workflow is",
    {200: OneWorkflowProgress}, errors=_UNKNOWN, narrowing="job",
)
CANCEL: Final = Operation(
    "cancelWorkflow", "DELETE /workflows/{workflow_id}", "control", "Cancel a workflow",
    {200: OneCancelledWorkflow}, "Jobs that wait are cancelled, active ones may end.",
    also=("POST /workflows/{workflow_id}/cancel",), errors=_CHANGED, narrowing="job",
)
RETRY: Final = Operation(
    "retryWorkflow", "POST /workflows/{workflow_id}/retry", "control", "Retry a workflow",
    {200: OneWorkflow}, "It goes on where it failed or was cancelled.", errors=_CHANGED, narrowing="job",
)
WORKFLOWS: Final = Subject("Workflows", "Jobs with an order", (CREATE, LIST, GET, PROGRESS, CANCEL, RETRY))
