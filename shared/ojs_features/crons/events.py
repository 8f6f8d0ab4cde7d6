"""The event of each occurrence of a cron entry (ojs-cron §9, ojs-events)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ojs_engine.base.ids import derived_job_id
from ojs_engine.base.times import format_ms
from ojs_engine.domain.events.envelope import Event
from ojs_engine.domain.events.source import EventSource, first_of
from ojs_engine.jetstream.subjects import encode_token
from ojs_features.crons.record import Cron, CronRun

_SCOPE: Final = "cron"
"""Where the events of a job's subject name its queue."""


def events_of_cron(cron: Cron, run: CronRun) -> list[Event]:
    """The events of one entry of the log; `cron` may be any later revision. Their ids never change."""
    data: dict[str, Any] = {
        "cron_name": cron.name,
        "cron_expr": cron.expression,
        "timezone": cron.timezone,
        "job_type": cron.draft.type,
        "queue": cron.draft.queue,
        "scheduled_at": format_ms(run.tick),
    }
    if run.outcome == "triggered":
        data |= {"job_id": run.job_id, "run_count": run.number, "actual_time": format_ms(run.at), "manual": bool(run.key)}
        return [_event(cron, run, "cron.triggered", data)]
    data["reason"] = run.reason
    if run.job_id is not None:
        data["existing_job_id"] = run.job_id
    if run.count > 1:
        data["occurrences"] = run.count
    return [_event(cron, run, "cron.skipped", data)]


def _event(cron: Cron, run: CronRun, event_type: str, data: dict[str, Any]) -> Event:
    origin = (cron.name, str(cron.created_at), str(run.n), event_type)
    return Event(
        id=f"evt_{derived_job_id(run.at, 'event', *origin)}",
        type=event_type,
        time=format_ms(run.at),
        subject=cron.name,
        data=data,
    )


def source(cron: Cron) -> EventSource:
    """Return an entry as the relay sees it."""
    events = partial(events_of_cron, cron)
    return EventSource(encode_token(cron.name), cron.created_at, _SCOPE, cron.log, first_of(cron.log), events)
