"""The workers as operators see and direct them (ojs-admin-api §9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_api import words
from ojs_core.base.errors import invalid
from ojs_core.base.fields import shown, struct_of
from ojs_core.base.times import format_ms
from ojs_core.domain.handlers import Handler
from ojs_core.domain.transitions import LIVENESS_MS
from ojs_core.read.messages import JobRow, WorkerPage, WorkerRow, WorkerSummary
from ojs_core.store.workers.notes import LEAVING, Directive, Wish
from ojs_core.store.workers.presence import WorkerRecord
from ojs_core.wire.members import Count, Timestamp, Uuid, given, timestamp
from ojs_core.wire.pages import Indexed, Page, Pagination, pagination, with_progress

WORKER_STATES: Final = get_args(words.WorkerState)
_WISHES: Final[tuple[Wish, ...]] = get_args(Wish)


class DirectiveBody(Struct):
    directive: str | None = None


class WorkerAnswer(Struct, kw_only=True, omit_defaults=True):
    """A worker. `state` is its own word, or `stale`."""

    id: str
    state: Annotated[str, Meta(extra_json_schema={"enum": [*WORKER_STATES]})]
    directive: Annotated[str, Meta(description="What an operator has told it.", extra_json_schema={"enum": ["none", *_WISHES]})]
    active_jobs: Count
    queues: tuple[str, ...]
    last_heartbeat_at: Timestamp
    hostname: str | UnsetType = UNSET
    pid: int | UnsetType = UNSET
    concurrency: int | UnsetType = UNSET
    started_at: str | UnsetType = UNSET
    labels: Raw | UnsetType = UNSET
    handlers: Annotated[tuple[Handler, ...], Meta(description="What it can run, if it says so.")] | UnsetType = UNSET
    directive_at: Timestamp | UnsetType = UNSET


class HeldJob(Struct, kw_only=True, omit_defaults=True):
    """A job that a worker holds, in short."""

    id: Uuid
    type: str
    queue: str
    attempt: Count
    started_at: Timestamp | UnsetType = UNSET


class WorkerDetail(WorkerAnswer, kw_only=True):
    """A worker with the jobs that it holds."""

    jobs: list[HeldJob]


class FleetSummary(Struct, kw_only=True):
    """All workers by state; those that drain count as quiet.

    `active` workers are all that are not stale. `active_jobs` are the jobs that all workers hold.
    """

    total: Count
    running: Count
    quiet: Count
    terminate: Count
    stale: Count
    active: Count
    active_jobs: Count = 0


class FleetPage(Indexed, kw_only=True):
    """A page of the workers. The summary counts all of them, whatever the list shows."""

    items: list[WorkerAnswer]
    summary: FleetSummary
    pagination: Pagination


class WorkerList(Indexed, kw_only=True):
    """The same for those who ask for them outside of the admin API."""

    workers: list[WorkerAnswer]
    summary: FleetSummary
    pagination: Pagination


class WorkerHealth(Struct, kw_only=True):
    """Whether a worker takes jobs. `state` is its own word (ojs-graceful-shutdown §10)."""

    worker_id: str
    state: str
    status: Literal["healthy", "draining", "stale"]
    active_jobs: Count
    last_heartbeat_at: Timestamp


class DirectedWorkers(Struct):
    """How many workers were told so."""

    directive: Wish
    workers: Count


class RemovedWorker(Struct):
    """The worker is forgotten."""

    deleted: bool
    worker_id: str


def parse_wish(body: bytes) -> Wish:
    """POST /admin/workers/directive `{directive}`."""
    sent = struct_of(body, DirectiveBody).directive
    if sent == "resume":  # the CLI's word
        return "running"
    for wish in _WISHES:
        if sent == wish:
            return wish
    raise invalid("directive", f"directive must be one of {', '.join(_WISHES)}, not {shown(sent)}")


def worker_answer(row: WorkerRow, directive: Directive | None) -> WorkerAnswer:
    """A worker and what an operator has told it."""
    record = row.record
    return WorkerAnswer(
        id=record.id,
        state="stale" if row.stale else record.state,
        directive="none" if directive is None else directive.wish,
        # A worker whose fetches don't name it still says how many it has.
        active_jobs=row.held or record.active_jobs,
        queues=record.queues,
        last_heartbeat_at=format_ms(record.seen_at),
        hostname=given(record.hostname),
        pid=given(record.pid),
        concurrency=given(record.concurrency),
        started_at=given(record.started_at),
        labels=record.labels or UNSET,
        handlers=record.handlers or UNSET,
        directive_at=timestamp(None if directive is None else directive.at),
    )


def worker_detail(worker: WorkerAnswer, held: Sequence[JobRow]) -> WorkerDetail:
    """The same with the jobs that it holds."""
    jobs = [
        HeldJob(id=job.id, type=job.type, queue=job.queue, attempt=job.attempt, started_at=timestamp(job.started_at))
        for job in held
    ]
    return WorkerDetail(**msgspec.structs.asdict(worker), jobs=jobs)


def fleet_page(page: WorkerPage, directives: Sequence[Directive | None], asked: Page) -> FleetPage:
    """A page of the workers, each with its directive."""
    answer = FleetPage(
        items=[worker_answer(row, directive) for row, directive in zip(page.workers, directives, strict=True)],
        summary=fleet_summary(page.summary),
        pagination=pagination(asked, page.total, page.next_cursor),
    )
    return with_progress(answer, page)


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
        last_heartbeat_at=format_ms(record.seen_at),
    )
