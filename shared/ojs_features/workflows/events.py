"""Events of workflows (ojs-events §3.4; ojs-workflows appendix B).

Those of jobs are made of the logs of jobs, the others of the workflow's own log. So that stays short, however many jobs
there are.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from ojs_engine.base.ids import derived_job_id
from ojs_engine.base.times import format_ms
from ojs_engine.domain.events.envelope import Event, job_event
from ojs_engine.domain.events.source import EventSource, first_of
from ojs_engine.domain.job import CALLED_OFF, TERMINAL, Entry, Job, Membership, State
from ojs_engine.domain.past import Logged
from ojs_engine.store.store import Store
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
    return [_event(f"workflow.{entry.event}", record.id, entry.at, data, str(entry.n), entry.op)]


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


def events_of_member(one: Logged) -> list[Event]:
    """Return what one entry of a member's log means for its workflow."""
    job, entry, member = one.job, one.entry, one.job.workflow
    if member is None or job.generation:
        return []
    if entry.event == "claimed" and member.opens and entry.attempt == 1:
        return [_started(job, entry, member)]
    if entry.event == "pushed" and member.callback is not None:
        return [_member_event(one, "workflow.callback_fired", member, callback=member.callback)]
    if entry.after not in TERMINAL or entry.reason == CALLED_OFF:
        return []
    what = "step" if member.kind in {"chain", "dag"} and member.callback is None else "job"
    members: dict[str, Any] = {"duration_ms": one.duration_ms or 0}
    if entry.after is State.COMPLETED:
        return [_member_event(one, f"workflow.{what}_completed", member, **members)]
    if job.error is not None:
        members["error"] = {"code": job.error.code, "message": job.error.message}
    else:
        members["error"] = {"code": "cancelled", "message": entry.reason or "the job was cancelled"}
    return [_member_event(one, f"workflow.{what}_failed", member, **members)]


def _member_event(one: Logged, event_type: str, member: Membership, **more: Any) -> Event:
    event = job_event(
        one,
        event_type,
        workflow_id=member.id,
        workflow_name=member.name,
        workflow_type=member.kind,
        step_id=member.step,
        step_index=member.index,
        step_type=one.job.type,
        steps_remaining=max(0, member.size - member.index - 1),
        **more,
    )
    return replace(event, subject=member.id)


def _started(job: Job, entry: Entry, member: Membership) -> Event:
    """Return the workflow's start. Its first job's log has it, so that it comes ahead of what its jobs do."""
    data = {"workflow_id": member.id, "workflow_name": member.name, "total_steps": member.opens, "job_id": job.id}
    return _event("workflow.started", member.id, entry.at, data, "started")


def _event(event_type: str, workflow_id: str, at: int, data: dict[str, Any], *origin: str) -> Event:
    """Return an event of a workflow. Its id follows from what it is of."""
    return Event(
        id=f"evt_{derived_job_id(at, 'event', workflow_id, *origin)}",
        type=event_type,
        time=format_ms(at),
        subject=workflow_id,
        data=data,
    )
