"""A workflow as clients read it (ojs-workflows §11). Nothing is null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ojs_api import workflows as contract
from ojs_api.workflows import (
    MAX_PROGRESS_STEPS,
    CancelledWorkflow,
    OneCancelledWorkflow,
    OneWorkflow,
    OneWorkflowProgress,
    StepProgress,
    StepsPagination,
    StepState,
    WorkflowError,
    WorkflowHead,
    WorkflowMetadata,
    WorkflowPage,
    WorkflowProgress,
    WorkflowStep,
)
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.fields import is_extension
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Job, State
from ojs_engine.wire.jobs.job import failed_attempt
from ojs_engine.wire.members import bare, extended, moment, written
from ojs_engine.wire.pages import Page as ListPage
from ojs_engine.wire.pages import pagination
from ojs_features.workflows.graph import Composite, Graph, NodeKind
from ojs_features.workflows.index import WorkflowPage as FoundWorkflows
from ojs_features.workflows.index import WorkflowRow
from ojs_features.workflows.inputs import reference
from ojs_features.workflows.record import StepError, Workflow, WorkflowCounts, WorkflowState, counts, job_id, run_of
from ojs_index.lists.progress import progress as indexed

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


class StepPage(NamedTuple):
    """The part of the root's members to show; `limit` also bounds the steps shown of all nested workflows together."""

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
    whole = len(here) >= root.members
    answer = contract.Workflow(
        **_head(graph, record, counts(graph, record)),
        steps=found.of(root),
        callbacks=found.callbacks(root),
        steps_pagination=None if whole else _part(root, here),
    )
    return OneWorkflow(workflow=written(extended(answer, root.extensions)))


def _part(root: Composite, here: range) -> StepsPagination:
    return StepsPagination(total=root.members, offset=here.start, limit=len(here), has_more=here.stop < root.members)


def cancelled_workflow(graph: Graph, record: Workflow) -> OneCancelledWorkflow:
    """The answer to a cancellation."""
    numbers = counts(graph, record)
    answer = CancelledWorkflow(
        **_head(graph, record, numbers),
        steps_cancelled=numbers.jobs_cancelled,
        steps_already_completed=numbers.jobs_completed,
    )
    return OneCancelledWorkflow(written(extended(answer, graph.root.extensions)))


def workflow_progress(graph: Graph, record: Workflow) -> OneWorkflowProgress:
    """How far it is in numbers, with the first of its direct steps (admin UI)."""
    numbers = counts(graph, record)
    answer = WorkflowProgress(
        **_listed(record, numbers),
        metadata=_metadata(numbers),
        progress=round((numbers.jobs_completed + numbers.jobs_failed + numbers.jobs_cancelled) / numbers.jobs, 4),
        steps=[_step_progress(graph, record, position) for position in range(min(graph.root.size, MAX_PROGRESS_STEPS))],
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
    return StepProgress(id=graph.root.step_id(position), state=_STEP_STATES[letter], progress=done)


def workflow_page(page: FoundWorkflows, asked: ListPage) -> WorkflowPage:
    """A list of workflows; `page` is what the index said."""
    rows = [_row(row) for row in page.workflows]
    return WorkflowPage(workflows=rows, pagination=pagination(asked, page.total, page.next_cursor), **indexed(page))


def _row(row: WorkflowRow) -> WorkflowHead:
    return WorkflowHead(
        id=row.id,
        type=row.kind,
        name=row.name,
        state=row.state,
        **_times(row.state, row.created_at, row.started_at, row.ended_at),
        **_counted(row.kind, row.steps, row.steps_completed),
    )


def _times(state: WorkflowState, created_at: int, started_at: int | None, ended_at: int | None) -> dict[str, Any]:
    ended = "cancelled_at" if state == "cancelled" else "completed_at"
    return {"created_at": moment(created_at), "started_at": moment(started_at), ended: moment(ended_at)}


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
    return WorkflowMetadata(
        job_count=numbers.jobs,
        completed_count=numbers.jobs_completed,
        failed_count=numbers.jobs_failed,
        cancelled_count=numbers.jobs_cancelled,
    )


def _head(graph: Graph, record: Workflow, numbers: WorkflowCounts) -> dict[str, Any]:
    """The members of a `WorkflowOutcome`."""
    view = _listed(record, numbers) | {"metadata": _metadata(numbers), "retries": record.run or None}
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
        occurred_at=moment(error.at),
        callback=parent.role(position),
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

    def of(self, composite: Composite) -> list[WorkflowStep]:
        """Its members that are shown."""
        return [self._step(composite, position) for position in self._shown.get(composite.node, range(0))]

    def callbacks(self, composite: Composite) -> dict[str, WorkflowStep]:
        """Its callbacks by role, or by id where a role has several."""
        return dict(self._called(composite))

    def _called(self, composite: Composite) -> Iterator[tuple[str, WorkflowStep]]:
        for position in range(composite.members, composite.size):
            role = composite.role(position)
            step = self._step(composite, position)
            yield (role if role is not None and composite.roles.count(role) == 1 else bare(step).id), step

    def _step(self, parent: Composite, position: int) -> WorkflowStep:
        node = parent.first + position
        letter = self._record.states[node]
        inner = self._graph.composite(node)
        ran = inner is None and letter in "qcfx"
        step = WorkflowStep(
            id=parent.step_id(position),
            index=position,
            type=self._graph.type_of(node),
            # What a batch calls back for comes after all of its jobs, which need not be said of each callback.
            depends_on=(
                [parent.step_id(need) for need in parent.depends_on(position)]
                if parent.needs or position < parent.members
                else []
            ),
            **({"state": _STEP_STATES[letter]} | (self._of_job(node, letter) if ran else {})),
            **({} if inner is None else self._of_workflow(inner)),
        )
        whole: WorkflowStep = written(extended(step, self._extensions(node) if inner is None else inner.extensions))
        return whole

    def _of_workflow(self, inner: Composite) -> dict[str, Any]:
        """The members of a step that is a workflow. It has `steps` also where none is shown."""
        states = self._record.states[inner.first : inner.first + inner.members]
        counted = _counted(inner.kind, inner.members, states.count("c") + states.count("C"))
        return {**counted, "name": inner.name, "steps": tuple(self.of(inner)), "callbacks": self.callbacks(inner)}

    def _extensions(self, node: int) -> Extensions:
        """Return the members of extensions of a job, as long as the answer has room: options may give many the same."""
        template = self._templates.get(node)
        if template is None:
            return {}
        found = {name: raw for name, raw in template.extra.items() if is_extension(name)}
        self._room -= sum(map(len, found.values()))
        return found if self._room >= 0 else {}

    def _of_job(self, node: int, letter: str) -> dict[str, Any]:
        """The members of a step whose job exists, or did."""
        job = self._jobs.get(node)
        if job is None:  # most of the cancelled never had one
            name = job_id(self._record.id, node, run_of(self._record, node))
            return {} if _STEP_STATES[letter] == "cancelled" else {"job_id": name}
        found: dict[str, Any] = {"state": _OF_JOB.get(job.state, "pending")} if letter == "q" else {}
        return found | {
            "job_id": job.id,
            "job_state": job.state,
            "started_at": moment(job.started_at),
            "completed_at": moment(job.completed_at),
            "result": written(job.result or (None if job.result_blob is None else reference(job.id))),
            "error": None if job.error is None else failed_attempt(job.error),
        }
