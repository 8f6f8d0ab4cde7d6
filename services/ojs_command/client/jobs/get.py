"""`ojs-nats get`: one job with its history."""

from __future__ import annotations

import argparse
from typing import Final

from ojs_command.client.output import at, json_text
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_engine.base.wording import duration
from ojs_engine.domain.members import LABELLED
from ojs_nats.models.jobs import JobDetail, TimelineEntry

_EXAMPLES: Final = """\
  ojs-nats get 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f
  ojs-nats get 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f --json | jq .errors
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the job")
    parser.does(_get, examples=_EXAMPLES)


async def _get(session: Session, given: argparse.Namespace) -> None:
    tell_job(session, await session.client.jobs.detail(given.id))


def tell_job(session: Session, job: JobDetail) -> None:
    """All that is known of a job."""
    out = session.out
    if out.as_json:
        out.json(job)
        return
    attempts = f"{job.attempt} of {job.max_attempts}" if job.max_attempts else job.attempt
    out.members(
        [
            ("id", job.id),
            ("type", job.type),
            ("state", job.state),
            ("queue", job.queue),
            ("priority", job.priority or None),
            ("attempt", attempts),
            ("arguments", json_text(job.args)),
            ("metadata", json_text(job.meta) if job.meta else None),
            *((by.field, getattr(job, by.field) or None) for by in LABELLED),
            ("result", None if job.result is None else json_text(job.result)),
            ("worker", job.worker_id),
            ("workflow", job.workflow_id),
            ("created", at(job.created_at)),
            ("scheduled", at(job.scheduled_at)),
            ("started", at(job.started_at)),
            ("next attempt", at(job.next_attempt_at)),
            ("lease ends", at(job.visible_until)),
            ("expires", at(job.expires_at)),
            ("completed", at(job.completed_at)),
            ("cancelled", at(job.cancelled_at)),
            ("discarded", at(job.discarded_at)),
            ("dead letter", True if job.dead_letter else None),
            ("is removed", at(job.leaves_at)),
        ]
    )
    for timer in job.timers:
        out.text(f"The {timer.service} will be told of it at {at(timer.due_at)}.")
    if job.errors:
        out.heading("Errors")
        errors = [(each.attempt, each.type or each.code, each.where, each.message) for each in job.errors]
        out.table(("attempt", "type", "where", "message"), errors, whole=True)
        _tell_traces(session, job)
    if job.timeline:
        out.heading("History")
        out.table(("at", "event", "state", "attempt", "worker", "reason"), _timeline(job.timeline), whole=True)


def _tell_traces(session: Session, job: JobDetail) -> None:
    """Print the backtrace of each attempt; one that is the same as that of the attempt before is named alone."""
    before = ""
    for error in job.errors:
        if not error.trace:
            continue
        if error.trace == before:
            session.out.text(f"The backtrace of attempt {error.attempt} is the same.")
            continue
        before = error.trace
        session.out.heading(f"Backtrace of attempt {error.attempt}")
        for line in error.trace.splitlines():
            session.out.text(line)


def _timeline(entries: list[TimelineEntry]) -> list[tuple[object, ...]]:
    """Each with how long it came after the one before."""
    rows: list[tuple[object, ...]] = []
    for place, entry in enumerate(entries):
        since = f" +{duration((entry.at - entries[place - 1].at).total_seconds())}" if place else ""
        when = f"{entry.at:%H:%M:%S.%f}"[:-3] + since
        rows.append((when, entry.event, entry.to, entry.attempt, entry.worker_id, entry.reason))
    return rows
