"""The admin API's own bodies: workers and their directives, a job's log (ojs-admin-api §9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from ojs_core.base.errors import invalid
from ojs_core.base.fields import shown, struct_of
from ojs_core.base.times import format_ms
from ojs_core.domain.job import Job, State
from ojs_core.domain.transitions import LIVENESS_MS
from ojs_core.read.messages import JobRow, WorkerPage, WorkerRow, WorkerSummary
from ojs_core.store.workers.directives import LEAVING, Directive, Wish
from ojs_core.store.workers.presence import WorkerRecord
from ojs_core.wire.pages import Page, pagination
from ojs_core.wire.retry import retry_policy

_WISHES: Final[tuple[Wish, ...]] = get_args(Wish)


class DirectiveBody(Struct):
    directive: str | None = None


def parse_wish(body: bytes) -> Wish:
    """POST /admin/workers/directive `{directive}`."""
    sent = struct_of(body, DirectiveBody).directive
    if sent == "resume":  # the CLI's word
        return "running"
    for wish in _WISHES:
        if sent == wish:
            return wish
    raise invalid("directive", f"directive must be one of {', '.join(_WISHES)}, not {shown(sent)}")


def worker_view(row: WorkerRow, directive: Directive | None) -> dict[str, Any]:
    """A worker. `state` is its own word, or `stale`; `directive` what an operator has told it, `none` if nothing."""
    record = row.record
    seen = format_ms(record.seen_at)
    view: dict[str, Any] = {
        "id": record.id,
        "state": "stale" if row.stale else record.state,
        "directive": "none" if directive is None else directive.wish,
        # A worker whose fetches don't name it still says how many it has.
        "active_jobs": row.held or record.active_jobs,
        "queues": record.queues,
        "last_heartbeat": seen,
        "last_heartbeat_at": seen,
    }
    for name in ("hostname", "pid", "concurrency", "started_at"):
        value = getattr(record, name)
        if value is not None:
            view[name] = value
    if record.labels:
        view["labels"] = view["metadata"] = record.labels
    if directive is not None:
        view["directive_at"] = format_ms(directive.at)
    return view


def workers_view(page: WorkerPage, directives: Sequence[Directive | None], asked: Page) -> dict[str, Any]:
    """GET /admin/workers; the summary counts all workers, whatever the list shows."""
    items = [worker_view(row, directive) for row, directive in zip(page.workers, directives, strict=True)]
    return {
        "items": items,
        "workers": items,
        "summary": _summary(page.summary),
        "total": page.total,
        "pagination": pagination(asked, page.total, page.next_cursor),
    }


def _summary(summary: WorkerSummary) -> dict[str, int]:
    numbers: dict[str, int] = msgspec.structs.asdict(summary)
    return {**numbers, "active": summary.total - summary.stale}


def worker_health(record: WorkerRecord, now: int) -> tuple[int, dict[str, Any]]:
    """GET /workers/{id}/health: the HTTP status and the body. `state` is the worker's own word (ojs-graceful-shutdown §10)."""
    status = "healthy"
    if record.state in LEAVING:
        status = "draining"
    if now - record.seen_at > LIVENESS_MS:
        status = "stale"
    view = {
        "worker_id": record.id,
        "state": record.state,
        "status": status,
        "active_jobs": record.active_jobs,
        "last_heartbeat_at": format_ms(record.seen_at),
    }
    return 200 if status == "healthy" else 503, view


def held_view(jobs: Sequence[JobRow]) -> list[dict[str, Any]]:
    """The jobs that a worker holds, in short."""
    return [
        {"id": job.id, "type": job.type, "queue": job.queue, "attempt": job.attempt}
        | ({"started_at": format_ms(job.started_at)} if job.started_at is not None else {})
        for job in jobs
    ]


def trace_view(job: Job) -> dict[str, Any]:
    """A job's log as the CLI's debugger reads it: each state with its beginning and, once it is over, its length."""
    snapshots = []
    events = []
    ends: list[int | None] = [*(entry.at for entry in job.transitions[1:]), None]
    for entry, end in zip(job.transitions, ends, strict=True):
        at = format_ms(entry.at)
        snapshot = {"phase": entry.event, "state": entry.after, "at": at}
        if end is not None:
            snapshot["duration"] = f"{(end - entry.at) / 1_000:g}s"
        if entry.reason is not None:
            snapshot["error"] = entry.reason
        snapshots.append(snapshot)
        events.append({"type": f"job.{entry.event}", "state": entry.after, "timestamp": at})
    return {"job_id": job.id, "snapshots": snapshots, "events": events}


def retries_view(job: Job) -> dict[str, Any]:
    """GET /jobs/{id}/retries. `started_at` and `next_retry_at` are known of attempts whose transitions are still logged."""
    policy = retry_policy(job.retry)
    retries = []
    for error in job.errors:
        retry: dict[str, Any] = {
            "attempt": error.attempt,
            "state": "failed",
            "error": error.message,
            "code": error.code,
            "type": error.type,
            "failed_at": format_ms(error.at),
        }
        started = [entry.at for entry in job.transitions if entry.event == "claimed" and entry.at <= error.at]
        if started:
            retry["started_at"] = format_ms(started[-1])
        retries.append(retry)
    if retries and job.state is State.RETRYABLE and job.next_attempt_at is not None:
        retries[-1] |= {"state": "retryable", "next_retry_at": format_ms(job.next_attempt_at)}
    return {
        "job_id": job.id,
        "retries": retries,
        "policy": policy,
        "attempt": job.attempt,
        "max_attempts": job.retry.max_attempts,
    }
