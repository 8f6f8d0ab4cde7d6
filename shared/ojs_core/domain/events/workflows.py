"""Events of workflows that are made of the logs of their jobs (ojs-events §3.4; ojs-workflows appendix B).

The log of the workflow itself has what happens to it and to those nested in it. So it stays short, however many jobs it has.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ojs_core.base.ids import derived_job_id
from ojs_core.base.times import format_ms
from ojs_core.domain.events.envelope import Event, job_event
from ojs_core.domain.job import CALLED_OFF, TERMINAL, Entry, Job, Membership, State
from ojs_core.domain.past import Logged


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
    """The workflow's start, told where it happens, so that it comes ahead of what its jobs do."""
    data = {"workflow_id": member.id, "workflow_name": member.name, "total_steps": member.opens, "job_id": job.id}
    return workflow_event("workflow.started", member.id, entry.at, data, "started")


def workflow_event(event_type: str, workflow_id: str, at: int, data: dict[str, Any], *origin: str) -> Event:
    """Return an event of a workflow. Its id follows from what it is of."""
    return Event(
        id=f"evt_{derived_job_id(at, 'event', workflow_id, *origin)}",
        type=event_type,
        time=format_ms(at),
        subject=workflow_id,
        data=data,
    )
