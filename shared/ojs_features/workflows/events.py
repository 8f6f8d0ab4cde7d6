"""Events of workflows that are made of their own logs (ojs-events §3.4; ojs-workflows appendix B)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from ojs_core.domain.events.envelope import Event
from ojs_core.domain.events.source import EventSource, first_of
from ojs_core.domain.events.workflows import workflow_event
from ojs_core.store.store import Store
from ojs_features.workflows.record import Claim, Workflow, WorkflowEntry
from ojs_features.workflows.records import workflow_reader
from ojs_features.workflows.subjects import Subjects

_SCOPE: Final = "workflow"
"""Where the events of a job's subject name its queue."""


def source(found: Workflow | Claim | None) -> EventSource | None:
    """Return the source of a workflow's events; None for a claim."""
    return _source(found) if isinstance(found, Workflow) else None


def _source(workflow: Workflow) -> EventSource:
    events = partial(events_of_workflow, workflow)
    return EventSource(workflow.id, workflow.created_at, _SCOPE, workflow.log, first_of(workflow.log), events)


async def creation(store: Store, workflow_id: str) -> EventSource | None:
    """Return the source of a workflow's creation alone; None if its record is a claim, has left or can't be read.

    Raises OjsError backend_unavailable.
    """
    found = await store.records.leader_raw(Subjects(store.config).workflow(workflow_id))
    record = None if found is None or not found[1] else workflow_reader.read(workflow_id, *found)
    return creation_of(record) if isinstance(record, Workflow) else None


def creation_of(workflow: Workflow) -> EventSource:
    """Return a workflow's source with the event of its creation alone."""
    whole = _source(workflow)
    return replace(whole, entries=[entry for entry in workflow.log if entry.n == whole.first == 1])


def events_of_workflow(record: Workflow, entry: WorkflowEntry) -> list[Event]:
    """The event of one entry of a workflow's log, if no job's log has it; `record` may be any later revision."""
    if entry.opener:
        return []
    data: dict[str, Any] = {"workflow_id": record.id, "workflow_name": record.name, "workflow_type": record.kind}
    match entry.event:
        case "created" | "started" | "retried":
            data["total_steps"] = record.steps
        case "completed" | "failed" | "cancelled":
            data |= {"total_steps": record.steps, "duration_ms": max(0, entry.at - (record.started_at or record.created_at))}
            if entry.event == "failed":
                data |= _failure(record)
        case _:
            data |= {
                "step_id": entry.step,
                "step_type": entry.kind,
                "step_index": entry.index,
                "steps_remaining": entry.left,
                "duration_ms": max(0, entry.at - (record.started_at or record.created_at)),
            }
            if entry.event.endswith("failed"):
                data["error"] = _failure(record)["error"]
    if entry.run:
        data["retries"] = entry.run
    return [workflow_event(f"workflow.{entry.event}", record.id, entry.at, data, str(entry.n), entry.op)]


def _failure(record: Workflow) -> dict[str, Any]:
    """The newest error: that of the step which ended the workflow, or of the last of several."""
    if not record.errors:
        return {"failed_step_id": "", "failed_step_type": "", "error": {"code": "unknown", "message": "not known any more"}}
    error = record.errors[-1]
    return {
        "failed_step_id": error.step,
        "failed_step_type": error.type,
        "error": {"code": error.code, "message": error.message},
    }
