"""The workers as operators see and direct them (ojs-admin-api §9)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import asdict

from ojs_api.workers import (
    FleetPage,
    FleetSummary,
    HeldJob,
    SendDirective,
    Worker,
    WorkerDetail,
    WorkerHandler,
    WorkerHealth,
    WorkerList,
)
from ojs_engine.domain.transitions import LIVENESS_MS
from ojs_engine.store.workers.notes import LEAVING, Directive, Wish
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_engine.wire.members import moment
from ojs_engine.wire.pages import Page, pagination
from ojs_engine.wire.requests import request_of
from ojs_index.asking.messages import JobRow, WorkerPage, WorkerRow, WorkerSummary
from ojs_index.lists.progress import progress


def parse_wish(body: bytes) -> Wish:
    """Return what workers are to be told. Raises OjsError invalid_payload, invalid_request."""
    sent = request_of(body, SendDirective).directive
    return "running" if sent == "resume" else sent  # the CLI's word


def worker_answer(row: WorkerRow, directive: Directive | None) -> Worker:
    """A worker and what an operator has told it."""
    record = row.record
    return Worker(
        id=record.id,
        state="stale" if row.stale else record.state,
        directive="none" if directive is None else directive.wish,
        # A worker whose fetches don't name it still says how many it has.
        active_jobs=row.held or record.active_jobs,
        queues=list(record.queues),
        last_heartbeat_at=moment(record.seen_at),
        hostname=record.hostname,
        pid=record.pid,
        concurrency=record.concurrency,
        started_at=record.started_at,
        labels=record.labels or None,
        handlers=[WorkerHandler(type=one.type, versions=one.versions) for one in record.handlers or ()],
        directive_at=moment(None if directive is None else directive.at),
    )


def worker_detail(worker: Worker, held: Sequence[JobRow]) -> WorkerDetail:
    """The same with the jobs that it holds."""
    jobs = [
        HeldJob(id=job.id, type=job.type, queue=job.queue, attempt=job.attempt, started_at=moment(job.started_at))
        for job in held
    ]
    return WorkerDetail(**asdict(worker), jobs=jobs)


def fleet_page(page: WorkerPage, directives: Sequence[Directive | None], asked: Page) -> FleetPage:
    """A page of the workers, each with its directive."""
    return FleetPage(
        items=[worker_answer(row, directive) for row, directive in zip(page.workers, directives, strict=True)],
        summary=fleet_summary(page.summary),
        pagination=pagination(asked, page.total, page.next_cursor),
        **progress(page),
    )


def worker_list(page: FleetPage) -> WorkerList:
    """The same page, called by what it lists."""
    return WorkerList(
        workers=page.items,
        summary=page.summary,
        pagination=page.pagination,
        partial=page.partial,
        index_progress=page.index_progress,
    )


def fleet_summary(summary: WorkerSummary) -> FleetSummary:
    """Return how many workers there are by state, and how many jobs they hold."""
    return FleetSummary(
        total=summary.total,
        running=summary.running,
        quiet=summary.quiet,
        terminate=summary.terminate,
        stale=summary.stale,
        active=summary.total - summary.stale,
        active_jobs=summary.held,
    )


def worker_health(record: WorkerRecord, now: int) -> WorkerHealth:
    """Whether a worker takes jobs at `now` (Unix ms): it does if it is `healthy`."""
    stale = now - record.seen_at > LIVENESS_MS
    return WorkerHealth(
        worker_id=record.id,
        state=record.state,
        status="stale" if stale else "draining" if record.state in LEAVING else "healthy",
        active_jobs=record.active_jobs,
        last_heartbeat_at=moment(record.seen_at),
    )
