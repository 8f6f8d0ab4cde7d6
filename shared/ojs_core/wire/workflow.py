"""A workflow as clients read it (ojs-workflows §11).

Members stand under `steps`, for groups and batches under `jobs` as well, callbacks under `callbacks`. Counters come in both
families that the documents know. Nothing is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Raw

from ojs_core.base.times import format_ms
from ojs_core.domain.job import Job, State
from ojs_core.domain.workflows.graph import Composite, Graph
from ojs_core.domain.workflows.inputs import reference
from ojs_core.domain.workflows.record import StepError, Workflow, counts, job_id, run_of
from ojs_core.read.messages import WorkflowPage, WorkflowRow
from ojs_core.wire.job import failed_attempt
from ojs_core.wire.lists import with_progress
from ojs_core.wire.members import encode
from ojs_core.wire.pages import Page as ListPage
from ojs_core.wire.pages import pagination

_MAX_STEPS: Final = 200
_STEP_STATES: Final = {
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
_OF_JOB: Final = {
    State.ACTIVE: "active",
    State.COMPLETED: "completed",
    State.DISCARDED: "failed",
    State.CANCELLED: "cancelled",
}


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
    nodes: list[int] = []
    for composite in graph.composites:
        positions = shown.get(composite.node)
        if positions is not None:
            nodes += [composite.first + position for position in (*positions, *range(composite.members, composite.size))]
    return [node for node in nodes if record.states[node] in "qcfx"]


def workflow_body(graph: Graph, record: Workflow, jobs: Mapping[int, Job], shown: Mapping[int, range]) -> bytes:
    """`{"workflow": …}` with the same members beside it, for clients that don't unwrap."""
    view = _root_view(graph, record) | _Steps(graph, record, jobs, shown).of(graph.root)
    root = shown[0]
    if len(root) < graph.root.members:
        view["steps_pagination"] = {
            "total": graph.root.members,
            "offset": root.start,
            "limit": len(root),
            "has_more": root.stop < graph.root.members,
        }
    return _wrapped(view)


def cancelled_body(graph: Graph, record: Workflow) -> bytes:
    """The answer to a cancellation."""
    numbers = counts(graph, record)
    view = _root_view(graph, record)
    view["steps_cancelled"] = view["cancelled_steps"] = numbers.jobs_cancelled
    view["steps_already_completed"] = numbers.jobs_completed
    return _wrapped(view)


def progress_body(graph: Graph, record: Workflow) -> bytes:
    """How far it is in numbers, with the first of its direct steps (admin UI)."""
    numbers = counts(graph, record)
    ended = numbers.jobs_completed + numbers.jobs_failed + numbers.jobs_cancelled
    view = {
        "id": record.id,
        "workflow_id": record.id,
        "name": record.name,
        "type": record.kind,
        "state": record.state,
        "steps_total": numbers.steps,
        "steps_completed": numbers.steps_completed,
        "jobs_total": numbers.jobs,
        "jobs_completed": numbers.jobs_completed,
        "jobs_failed": numbers.jobs_failed,
        "jobs_cancelled": numbers.jobs_cancelled,
        "progress": round(ended / numbers.jobs, 4),
        "progress_percent": round(100 * ended / numbers.jobs, 2),
        "steps": [_step_progress(graph, record, position) for position in range(min(graph.root.size, _MAX_STEPS))],
    }
    return encode({"workflow": view} | view)


def _step_progress(graph: Graph, record: Workflow, position: int) -> dict[str, Any]:
    node = graph.root.first + position
    letter = record.states[node]
    inner = graph.composite(node)
    done = float(letter in "cCfFxX")
    if inner is not None and not done:
        states = record.states[inner.first : inner.first + inner.members]
        done = round(sum(one in "cCfFxX" for one in states) / inner.members, 4)
    return {"id": graph.root.step_id(position), "state": _STEP_STATES[letter], "progress": done}


def workflows_body(page: WorkflowPage, asked: ListPage) -> bytes:
    """A list; `items` is the admin API's name of it, `total` stands beside `pagination` for the CLI."""
    views = [_listed(row) for row in page.workflows]
    listed: dict[str, Any] = {"workflows": views, "items": views, "total": page.total}
    return encode(with_progress(listed | {"pagination": pagination(asked, page.total, page.next_cursor)}, page))


def _listed(row: WorkflowRow) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.id,
        "type": row.kind,
        "name": row.name,
        "state": row.state,
        "steps_total": row.steps,
        "steps_completed": row.steps_completed,
        "step_count": row.steps,
        "created_at": format_ms(row.created_at),
    }
    if row.started_at is not None:
        view["started_at"] = format_ms(row.started_at)
    if row.ended_at is not None:
        view["cancelled_at" if row.state == "cancelled" else "completed_at"] = format_ms(row.ended_at)
    return view


def _wrapped(view: dict[str, Any]) -> bytes:
    # Long lists are encoded once, though they stand twice.
    held = {name: Raw(encode(value)) if type(value) is list or type(value) is dict else value for name, value in view.items()}
    return encode({"workflow": held} | held)


def _root_view(graph: Graph, record: Workflow) -> dict[str, Any]:
    numbers = counts(graph, record)
    times = {"created_at": format_ms(record.created_at)}
    if record.started_at is not None:
        times["started_at"] = format_ms(record.started_at)
    if record.ended_at is not None:
        times["cancelled_at" if record.state == "cancelled" else "completed_at"] = format_ms(record.ended_at)
    view: dict[str, Any] = {
        "id": record.id,
        "type": record.kind,
        "name": record.name,
        "state": record.state,
        **times,
        "steps_total": numbers.steps,
        "steps_completed": numbers.steps_completed,
        "jobs_total": numbers.steps,
        "jobs_completed": numbers.steps_completed,
        "step_count": numbers.steps,
        "metadata": {
            **times,
            "job_count": numbers.jobs,
            "completed_count": numbers.jobs_completed,
            "failed_count": numbers.jobs_failed,
            "cancelled_count": numbers.jobs_cancelled,
        },
    }
    if record.run:
        view["retries"] = record.run
    if record.errors:
        view["errors"] = [_step_error(graph, record, error) for error in record.errors]
        view["failed_job_ids"] = [job_id(record.id, error.node, error.run) for error in record.errors]
    root = graph.root
    if root.kind == "chain" and record.state == "failed":
        failed = next((p for p in range(root.size) if record.states[root.first + p] in "fF"), None)
        if failed is not None:
            view["failed_step_index"] = failed
            view["failed_step_id"] = root.step_id(failed)
    return view


def _step_error(graph: Graph, record: Workflow, error: StepError) -> dict[str, Any]:
    parent = graph.parent(error.node)
    view: dict[str, Any] = {
        "job_id": job_id(record.id, error.node, error.run),
        "step_id": parent.step_id(error.node - parent.first),
        "code": error.code,
        "message": error.message,
        "attempt": error.attempt,
        "occurred_at": format_ms(error.at),
    }
    role = parent.role(error.node - parent.first)
    if role is not None:
        view["callback"] = role
    return view


class _Steps:
    """The lists of steps of a workflow and of those in it."""

    def __init__(
        self,
        graph: Graph,
        record: Workflow,
        jobs: Mapping[int, Job],
        shown: Mapping[int, range],
    ) -> None:
        self._graph = graph
        self._record = record
        self._jobs = jobs
        self._shown = shown

    def of(self, composite: Composite) -> dict[str, Any]:
        steps = [self._step(composite, position) for position in self._shown.get(composite.node, range(0))]
        lists: dict[str, Any] = {"steps": steps}
        if composite.kind in {"group", "batch"}:
            lists["jobs"] = steps
        if composite.roles:
            lists["callbacks"] = dict(self._callbacks(composite))
        return lists

    def _callbacks(self, composite: Composite) -> Iterator[tuple[str, Any]]:
        for position in range(composite.members, composite.size):
            role = composite.role(position)
            step = self._step(composite, position)
            yield (role if role is not None and composite.roles.count(role) == 1 else step["id"]), step

    def _step(self, parent: Composite, position: int) -> dict[str, Any]:
        node = parent.first + position
        letter = self._record.states[node]
        view: dict[str, Any] = {
            "id": parent.step_id(position),
            "index": position,
            "type": self._graph.type_of(node),
            "state": _STEP_STATES[letter],
            "depends_on": [parent.step_id(need) for need in parent.depends_on(position)] if position < parent.members else [],
        }
        inner = self._graph.composite(node)
        if inner is not None:
            states = self._record.states[inner.first : inner.first + inner.members]
            completed = states.count("c") + states.count("C")
            view |= {"name": inner.name, "steps_total": inner.members, "steps_completed": completed}
            return view | self.of(inner)
        if letter in "qcfx":
            self._add_job(view, node)
        return view

    def _add_job(self, view: dict[str, Any], node: int) -> None:
        job = self._jobs.get(node)
        if job is None:
            if view["state"] != "cancelled":  # most of those never had a job
                view["job_id"] = job_id(self._record.id, node, run_of(self._record, node))
            return
        view |= {"job_id": job.id, "job_ids": [job.id], "job_state": job.state}
        if self._record.states[node] == "q":
            view["state"] = _OF_JOB.get(job.state, "pending")
        for name in ("started_at", "completed_at"):
            at = getattr(job, name)
            if at is not None:
                view[name] = format_ms(at)
        if job.result:
            view["result"] = job.result
        elif job.result_blob is not None:
            view["result"] = reference(job.id)
        if job.error is not None:
            view["error"] = failed_attempt(job.error)
