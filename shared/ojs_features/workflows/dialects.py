"""Workflows for official clients: but for the Python and Go SDKs, none unwraps them."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw, Struct

from ojs_api.workflows import (
    MemberCounts,
    OneCancelledWorkflow,
    OneWorkflow,
    OneWorkflowProgress,
    Workflow,
    WorkflowHead,
    WorkflowPage,
    WorkflowStep,
)
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import bare, encode, members, written

_TIMES: Final = ("created_at", "started_at", "completed_at", "cancelled_at")


def _flat(view: dict[str, Any]) -> dict[str, Any]:
    """Return the members twice: in `workflow`, and next to it. Long ones are encoded once."""
    held = {name: Raw(encode(value)) if type(value) in {list, dict} else value for name, value in view.items()}
    return {"workflow": held} | held


def _bare(answer: OneWorkflow | OneCancelledWorkflow) -> dict[str, Any]:
    return _flat(members(answer.workflow)) | _beside(answer)


def _beside(answer: Struct) -> dict[str, Any]:
    """Return the members of an answer without the workflow itself."""
    return {name: value for name, value in members(answer).items() if name != "workflow"}


def _for_sdk(answer: OneWorkflow) -> dict[str, Any]:
    """The Python and Go SDKs send callbacks as steps, and look for them there."""
    workflow = bare(answer.workflow)
    view = _with_times(answer)
    if workflow.callbacks:
        everyone = [bare(step).id for step in workflow.steps]
        steps = workflow.callbacks.values()
        called = [members(step) | {"depends_on": bare(step).depends_on or everyone} for step in steps]
        view["steps"] = [*workflow.steps, *called]
    return _flat(view) | _beside(answer)


def _cancelled_for_sdk(answer: OneCancelledWorkflow) -> dict[str, Any]:
    return _flat(_with_times(answer))


def _with_times(answer: OneWorkflow | OneCancelledWorkflow) -> dict[str, Any]:
    """The JS SDK reads the times in `metadata`."""
    view = members(answer.workflow)
    times = {name: view[name] for name in _TIMES if name in view}
    return view | {"metadata": members(bare(answer.workflow).metadata) | times}


def _cancelled_for_cli(answer: OneCancelledWorkflow) -> dict[str, Any]:
    return _bare(answer) | {"cancelled_steps": bare(answer.workflow).steps_cancelled}


def _with_steps_counted(answer: MemberCounts) -> dict[str, Any]:
    """The admin UI reads the members of every workflow as steps."""
    view, counted = members(answer), bare(answer)
    if counted.jobs_total is not None:
        view |= {"steps_total": counted.jobs_total, "steps_completed": counted.jobs_completed}
    return view


def _for_ui(answer: OneWorkflow) -> dict[str, Any]:
    return _flat(_with_steps(answer.workflow)) | _beside(answer)


def _cancelled_for_ui(answer: OneCancelledWorkflow) -> dict[str, Any]:
    return _flat(_with_steps_counted(answer.workflow))


def _progress_for_ui(answer: OneWorkflowProgress) -> dict[str, Any]:
    return _flat(_with_steps_counted(answer.workflow) | {"workflow_id": answer.workflow.id})


def _with_steps(answer: Workflow | WorkflowStep) -> dict[str, Any]:
    view = _with_steps_counted(answer)
    own: Workflow | WorkflowStep = written(bare(answer))
    if "steps" in view:
        view["steps"] = [_step_for_ui(step) for step in own.steps]
    if own.callbacks:
        view["callbacks"] = {name: _step_for_ui(step) for name, step in own.callbacks.items()}
    return view


def _step_for_ui(step: WorkflowStep) -> dict[str, Any]:
    view, job_id = _with_steps(step), bare(step).job_id
    return view if job_id is None else view | {"job_ids": [job_id]}


def _page_for_cli(answer: WorkflowPage) -> dict[str, Any]:
    rows = [members(row) | {"step_count": _size(row)} for row in answer.workflows]
    return members(answer) | {"workflows": rows, "total": answer.pagination.total}


def _size(row: WorkflowHead) -> int | None:
    return row.jobs_total if row.steps_total is None else row.steps_total


def _page_for_ui(answer: WorkflowPage) -> dict[str, Any]:
    return members(answer) | {"items": [_with_steps_counted(row) for row in answer.workflows]}


SHAPES: Final[Shapes] = {
    OneWorkflow: {"sdk": _for_sdk, "cli": _bare, "ui": _for_ui},
    OneCancelledWorkflow: {"sdk": _cancelled_for_sdk, "cli": _cancelled_for_cli, "ui": _cancelled_for_ui},
    OneWorkflowProgress: {"ui": _progress_for_ui},
    WorkflowPage: {"cli": _page_for_cli, "ui": _page_for_ui},
}
