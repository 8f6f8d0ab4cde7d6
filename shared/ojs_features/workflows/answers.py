"""A workflow as clients read it (ojs-workflows §11). Nothing is null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_core.base.extensions import Extensions
from ojs_core.base.fields import is_extension
from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.base.times import format_ms
from ojs_core.domain.job import Job, State
from ojs_core.wire.jobs.job import FailedAttempt, failed_attempt
from ojs_core.wire.members import Count, Extended, OpenStruct, Timestamp, Uuid, Warnings, bare, extended, timestamp
from ojs_core.wire.pages import Indexed, Pagination, pagination, with_progress
from ojs_core.wire.pages import Page as ListPage
from ojs_features.workflows.graph import Composite, Graph, NodeKind, Role
from ojs_features.workflows.index import WorkflowPage as FoundWorkflows
from ojs_features.workflows.index import WorkflowRow
from ojs_features.workflows.inputs import reference
from ojs_features.workflows.record import StepError, Workflow, WorkflowCounts, WorkflowState, counts, job_id, run_of

StepState = Literal["waiting", "pending", "active", "running", "completed", "failed", "cancelled"]
_Fraction = Annotated[float, Meta(ge=0, le=1)]

_MAX_STEPS: Final = 200
_STEP_STATES: Final[dict[str, StepState]] = {
    ".": "waiting",
    "q": "pending",
    "s": "cancelled",
    "R": "running",
    "c": "completed",
    "C": "completed",
    "f": "failed",
    "F": "failed",
    "x": "cancelled",
    "X": "cancelled",
}
_OF_JOB: Final[dict[State, StepState]] = {
    State.ACTIVE: "active",
    State.COMPLETED: "completed",
    State.DISCARDED: "failed",
    State.CANCELLED: "cancelled",
}


class MemberCounts(Struct, kw_only=True, omit_defaults=True):
    """The base of what has members: those of a chain or DAG are counted as steps, those of a group or batch as jobs."""

    steps_total: Count | UnsetType = UNSET
    steps_completed: Count | UnsetType = UNSET
    jobs_total: Count | UnsetType = UNSET
    jobs_completed: Count | UnsetType = UNSET


class ListedWorkflow(MemberCounts, kw_only=True, omit_defaults=True):
    """A workflow without its steps."""

    id: Uuid
    type: NodeKind
    name: str
    state: WorkflowState
    created_at: Timestamp
    started_at: Timestamp | UnsetType = UNSET
    completed_at: Timestamp | UnsetType = UNSET
    cancelled_at: Timestamp | UnsetType = UNSET


class WorkflowMetadata(Struct):
    """How many jobs there are, those of nested workflows included, and what has become of them. Callbacks don't count."""

    job_count: Count
    completed_count: Count
    failed_count: Count
    cancelled_count: Count


class WorkflowError(Struct, kw_only=True, omit_defaults=True):
    """Why a job of the workflow counts as failed."""

    job_id: Uuid
    step_id: str
    code: str
    message: str
    attempt: Count
    occurred_at: Timestamp
    callback: Role | UnsetType = UNSET


class WorkflowStep(MemberCounts, OpenStruct, kw_only=True, omit_defaults=True):
    """A job, or a workflow with steps of its own."""

    id: str
    index: Count
    type: str
    state: StepState
    depends_on: list[str]
    job_id: Uuid | UnsetType = UNSET
    job_state: State | UnsetType = UNSET
    started_at: Timestamp | UnsetType = UNSET
    completed_at: Timestamp | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: FailedAttempt | UnsetType = UNSET
    name: str | UnsetType = UNSET
    steps: list[WorkflowStep | Extended[WorkflowStep]] | UnsetType = UNSET
    callbacks: dict[str, WorkflowStep | Extended[WorkflowStep]] | UnsetType = UNSET


StepView = WorkflowStep | Extended[WorkflowStep]
_Callbacks = Annotated[dict[str, StepView], Meta(description="By role, or by id where a role has several.")]


class StepsPagination(Struct):
    """Which of the outermost steps are shown, when not all are."""

    total: Count
    offset: Count
    limit: Count
    has_more: bool


class WorkflowHead(ListedWorkflow, OpenStruct, kw_only=True, omit_defaults=True):
    """A workflow with what has become of it, without its steps."""

    metadata: WorkflowMetadata
    retries: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    errors: list[WorkflowError] | UnsetType = UNSET
    failed_step_index: Count | UnsetType = UNSET
    failed_step_id: str | UnsetType = UNSET


class WorkflowAnswer(WorkflowHead, kw_only=True, omit_defaults=True):
    """A workflow with its steps."""

    steps: list[StepView]
    callbacks: _Callbacks | UnsetType = UNSET
    steps_pagination: StepsPagination | UnsetType = UNSET


class CancelledWorkflowAnswer(WorkflowHead, kw_only=True, omit_defaults=True):
    """A workflow after its cancellation."""

    steps_cancelled: Count
    steps_already_completed: Count


class StepProgress(Struct):
    """How far a direct step is."""

    id: str
    state: StepState
    progress: _Fraction


class WorkflowProgress(ListedWorkflow, kw_only=True, omit_defaults=True):
    """How far a workflow is, with the first of its direct steps."""

    metadata: WorkflowMetadata
    progress: _Fraction
    steps: Annotated[list[StepProgress], Meta(max_length=_MAX_STEPS)]


class OneWorkflow(Struct):
    """The answer about one workflow."""

    workflow: WorkflowAnswer | Extended[WorkflowAnswer]
    warnings: Warnings | UnsetType = UNSET


class OneCancelledWorkflow(Struct):
    """The answer to a cancellation."""

    workflow: CancelledWorkflowAnswer | Extended[CancelledWorkflowAnswer]


class OneWorkflowProgress(Struct):
    """The answer in numbers."""

    workflow: WorkflowProgress


class WorkflowPage(Indexed, kw_only=True):
    """A page of the list of workflows."""

    workflows: list[ListedWorkflow]
    pagination: Pagination


class StepPage(NamedTuple):
    """Which of the root's members to show; `limit` also bounds the steps shown of all nested workflows together."""

    offset: int
    limit: int


def pages(graph: Graph, page: StepPage) -> dict[int, range]:
    """The positions to show of each workflow, callbacks not counted, by its node; what is beyond the limit is left out."""
    shown: dict[int, range] = {}
    left = page.limit
    waiting = [(graph.root, page.offset)]
    for composite, offset in waiting:
        end = min(composite.members, offset + left)
        shown[composite.node] = range(offset, max(offset, end))
        left -= len(shown[composite.node])
        for position in (*shown[composite.node], *range(composite.members, composite.size)):
            inner = graph.composite(composite.first + position)
            if inner is not None:
                waiting.append((inner, 0))
    return shown


def shown_jobs(graph: Graph, record: Workflow, shown: Mapping[int, range]) -> list[int]:
    """The nodes whose jobs are looked up for an answer: they exist, or did."""
    return [node for node in _shown_nodes(graph, shown) if record.states[node] in "qcfx"]


def _shown_nodes(graph: Graph, shown: Mapping[int, range]) -> Iterator[int]:
    for composite in graph.composites:
        positions = shown.get(composite.node)
        if positions is not None:
            callbacks = range(composite.members, composite.size)
            yield from (composite.first + position for position in (*positions, *callbacks))


def extended_steps(graph: Graph, shown: Mapping[int, range]) -> list[int]:
    """Return the nodes of an answer whose templates are looked up for it: the jobs with members of extensions."""
    if not graph.shape.extended:
        return []
    marked = set(graph.shape.extended)
    return [node for node in _shown_nodes(graph, shown) if node in marked]


def one_workflow(
    graph: Graph,
    record: Workflow,
    jobs: Mapping[int, Job],
    shown: Mapping[int, range],
    templates: Mapping[int, Job] = {},
) -> OneWorkflow:
    """The workflow with the steps that are shown; `jobs` are those of its nodes that are still there.

    `templates` are those of `extended_steps`.
    """
    found = _Steps(graph, record, jobs, shown, templates)
    root, here = graph.root, shown[0]
    head = _head(graph, record, counts(graph, record))
    answer = WorkflowAnswer(**head, steps=found.of(root), callbacks=found.callbacks(root))
    if len(here) < root.members:
        answer.steps_pagination = StepsPagination(root.members, here.start, len(here), here.stop < root.members)
    return OneWorkflow(extended(answer, root.extensions))


def cancelled_workflow(graph: Graph, record: Workflow) -> OneCancelledWorkflow:
    """The answer to a cancellation."""
    numbers = counts(graph, record)
    answer = CancelledWorkflowAnswer(
        **_head(graph, record, numbers),
        steps_cancelled=numbers.jobs_cancelled,
        steps_already_completed=numbers.jobs_completed,
    )
    return OneCancelledWorkflow(extended(answer, graph.root.extensions))


def workflow_progress(graph: Graph, record: Workflow) -> OneWorkflowProgress:
    """How far it is in numbers, with the first of its direct steps (admin UI)."""
    numbers = counts(graph, record)
    answer = WorkflowProgress(
        **_listed(record, numbers),
        metadata=_metadata(numbers),
        progress=round((numbers.jobs_completed + numbers.jobs_failed + numbers.jobs_cancelled) / numbers.jobs, 4),
        steps=[_step_progress(graph, record, position) for position in range(min(graph.root.size, _MAX_STEPS))],
    )
    return OneWorkflowProgress(answer)


def _step_progress(graph: Graph, record: Workflow, position: int) -> StepProgress:
    node = graph.root.first + position
    letter = record.states[node]
    inner = graph.composite(node)
    done = float(letter in "cCfFxX")
    if inner is not None and not done:
        states = record.states[inner.first : inner.first + inner.members]
        done = round(sum(one in "cCfFxX" for one in states) / inner.members, 4)
    return StepProgress(graph.root.step_id(position), _STEP_STATES[letter], done)


def workflow_page(page: FoundWorkflows, asked: ListPage) -> WorkflowPage:
    """A list of workflows; `page` is what the index said."""
    rows = [_row(row) for row in page.workflows]
    return with_progress(WorkflowPage(workflows=rows, pagination=pagination(asked, page.total, page.next_cursor)), page)


def _row(row: WorkflowRow) -> ListedWorkflow:
    return ListedWorkflow(
        id=row.id,
        type=row.kind,
        name=row.name,
        state=row.state,
        **_times(row.state, row.created_at, row.started_at, row.ended_at),
        **_counted(row.kind, row.steps, row.steps_completed),
    )


def _times(state: WorkflowState, created_at: int, started_at: int | None, ended_at: int | None) -> dict[str, Any]:
    ended = "cancelled_at" if state == "cancelled" else "completed_at"
    return {"created_at": format_ms(created_at), "started_at": timestamp(started_at), ended: timestamp(ended_at)}


def _counted(kind: NodeKind, total: int, completed: int) -> dict[str, Any]:
    what = "jobs" if kind in {"group", "batch"} else "steps"
    return {f"{what}_total": total, f"{what}_completed": completed}


def _listed(record: Workflow, numbers: WorkflowCounts) -> dict[str, Any]:
    return {
        "id": record.id,
        "type": record.kind,
        "name": record.name,
        "state": record.state,
        **_times(record.state, record.created_at, record.started_at, record.ended_at),
        **_counted(record.kind, numbers.steps, numbers.steps_completed),
    }


def _metadata(numbers: WorkflowCounts) -> WorkflowMetadata:
    return WorkflowMetadata(numbers.jobs, numbers.jobs_completed, numbers.jobs_failed, numbers.jobs_cancelled)


def _head(graph: Graph, record: Workflow, numbers: WorkflowCounts) -> dict[str, Any]:
    """The members of a `WorkflowHead`."""
    view = _listed(record, numbers) | {"metadata": _metadata(numbers), "retries": record.run or UNSET}
    if record.errors:
        view["errors"] = [_error(graph, record, error) for error in record.errors]
    root = graph.root
    if root.kind == "chain" and record.state == "failed":
        failed = next((p for p in range(root.size) if record.states[root.first + p] in "fF"), None)
        if failed is not None:
            view["failed_step_index"] = failed
            view["failed_step_id"] = root.step_id(failed)
    return view


def _error(graph: Graph, record: Workflow, error: StepError) -> WorkflowError:
    parent = graph.parent(error.node)
    position = error.node - parent.first
    return WorkflowError(
        job_id=job_id(record.id, error.node, error.run),
        step_id=parent.step_id(position),
        code=error.code,
        message=error.message,
        attempt=error.attempt,
        occurred_at=format_ms(error.at),
        callback=parent.role(position) or UNSET,
    )


class _Steps:
    """The lists of steps of a workflow and of those in it."""

    def __init__(
        self,
        graph: Graph,
        record: Workflow,
        jobs: Mapping[int, Job],
        shown: Mapping[int, range],
        templates: Mapping[int, Job],
    ) -> None:
        self._graph = graph
        self._templates = templates
        self._room = DEFAULT_LIMITS.max_body_bytes
        self._record = record
        self._jobs = jobs
        self._shown = shown

    def of(self, composite: Composite) -> list[StepView]:
        """Its members that are shown."""
        return [self._step(composite, position) for position in self._shown.get(composite.node, range(0))]

    def callbacks(self, composite: Composite) -> dict[str, StepView] | UnsetType:
        """Its callbacks by role, or by id where a role has several."""
        return dict(self._called(composite)) if composite.roles else UNSET

    def _called(self, composite: Composite) -> Iterator[tuple[str, StepView]]:
        for position in range(composite.members, composite.size):
            role = composite.role(position)
            step = self._step(composite, position)
            yield (role if role is not None and composite.roles.count(role) == 1 else bare(step).id), step

    def _step(self, parent: Composite, position: int) -> StepView:
        node = parent.first + position
        letter = self._record.states[node]
        step = WorkflowStep(
            id=parent.step_id(position),
            index=position,
            type=self._graph.type_of(node),
            state=_STEP_STATES[letter],
            # What a batch calls back for comes after all of its jobs, which need not be said of each callback.
            depends_on=(
                [parent.step_id(need) for need in parent.depends_on(position)]
                if parent.needs or position < parent.members
                else []
            ),
        )
        inner = self._graph.composite(node)
        if inner is None:
            if letter in "qcfx":
                self._add_job(step, node)
            return extended(step, self._extensions(node))
        states = self._record.states[inner.first : inner.first + inner.members]
        for name, number in _counted(inner.kind, inner.members, states.count("c") + states.count("C")).items():
            setattr(step, name, number)
        step.name = inner.name
        step.steps = self.of(inner)
        step.callbacks = self.callbacks(inner)
        return extended(step, inner.extensions)

    def _extensions(self, node: int) -> Extensions:
        """Return the members of extensions of a job, as long as the answer has room: options may give many the same."""
        template = self._templates.get(node)
        if template is None:
            return {}
        found = {name: raw for name, raw in template.extra.items() if is_extension(name)}
        self._room -= sum(map(len, found.values()))
        return found if self._room >= 0 else {}

    def _add_job(self, step: WorkflowStep, node: int) -> None:
        job = self._jobs.get(node)
        if job is None:
            if step.state != "cancelled":  # most of those never had a job
                step.job_id = job_id(self._record.id, node, run_of(self._record, node))
            return
        step.job_id, step.job_state = job.id, job.state
        if self._record.states[node] == "q":
            step.state = _OF_JOB.get(job.state, "pending")
        step.started_at = timestamp(job.started_at)
        step.completed_at = timestamp(job.completed_at)
        if job.result:
            step.result = job.result
        elif job.result_blob is not None:
            step.result = reference(job.id)
        if job.error is not None:
            step.error = failed_attempt(job.error)
