"""Many jobs in one request (docs/batches.md)."""

from __future__ import annotations

from typing import Final

from ojs_engine.access.permissions import Need
from ojs_engine.api.common import CONFIRM, IDEMPOTENCY_KEY, JOB_ID, PRIORITY, PUSH_REFUSALS, QUEUE_NAME, SHORT, STATE
from ojs_engine.api.envelope import ENVELOPE
from ojs_engine.api.route import Part, Route, RouteHandler
from ojs_engine.api.schema import (
    FLAG,
    TEXT,
    Named,
    body_of,
    either,
    list_of,
    number,
    one_of,
    text,
    whole,
)
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.members import FOUND_BY
from ojs_features.bulk.answers import CHANGED, BulkConfirmed, BulkEnqueued, PushedBatch
from ojs_features.bulk.batch import BatchHandlers
from ojs_features.bulk.dialects import SHAPES
from ojs_features.bulk.handlers import BulkHandlers
from ojs_features.bulk.requests import ConfirmedBody, FilterBody, JobsBody, SelectionBody
from ojs_features.bulk.selection import Operation

_SENT_KEY: Final = text("In place of the header Idempotency-Key.", most=DEFAULT_LIMITS.max_idempotency_chars)
_ATOMICITY: Final = one_of("partial", "atomic", about="`atomic`: all or none.")
_MOMENT: Final = text("An RFC 3339 timestamp with a zone, or a duration from now.")
_NEW_PRIORITY: Final = PRIORITY | {"description": "What jobs are reprioritised to; of no other operation."}
_FILTER: Final = Named(
    "JobFilter",
    body_of(
        FilterBody,
        type=SHORT,
        queue=QUEUE_NAME,
        state=either(STATE, list_of(STATE)),
        states=list_of(STATE),
        enqueued_before=_MOMENT,
        enqueued_after=_MOMENT,
        older_than=either(number(0), TEXT, about="Seconds, or a duration."),
        priority=PRIORITY,
        **{by.name: SHORT for by in FOUND_BY},
        since=_MOMENT,
        until=_MOMENT,
    ),
)
_MOST: Final = DEFAULT_LIMITS.max_bulk_jobs
_SELECTION: Final = Named(
    "JobSelection",
    body_of(
        SelectionBody,
        job_ids=list_of(JOB_ID, 1, _MOST),
        filter=_FILTER,
        atomicity=_ATOMICITY,
        confirm=FLAG | {"description": "Needed with a filter by states and times alone."},
        limit=whole(1, _MOST, "Jobs of the filter that this request takes."),
        cursor=text("`next_cursor` of the request before with the same filter."),
        priority=_NEW_PRIORITY,
        idempotency_key=_SENT_KEY,
    )
    | {"description": "Exactly one of `job_ids` and `filter`."},
)
_CONFIRMED_BODY: Final = body_of(
    ConfirmedBody,
    "filter",
    filter=_FILTER,
    confirm=CONFIRM,
    limit=whole(1, _MOST, "Jobs of the filter that this request takes; without it, up to 10,000."),
    cursor=text("`next_cursor` of the request before with the same filter."),
    priority=_NEW_PRIORITY,
)
_PARTLY: Final = "207 when some items were refused, 422 when all were; each item says why. 503 if NATS hindered all."


def _selecting(handler: RouteHandler, operation: Operation, need: Need, summary: str, besides: str = "") -> Route:
    """What is done to jobs that are named, or to a page of those that fit a filter."""
    return Route(
        BulkHandlers,
        handler,
        (f"POST /jobs/bulk/{operation} bulk{operation.capitalize()}Jobs",),
        need,
        summary,
        dict.fromkeys((200, 207, 422), CHANGED[operation]),
        f"By ids, or by a filter page by page. {besides}{_PARTLY}",
        body=_SELECTION,
        query=(IDEMPOTENCY_KEY,),
        narrowing="job",
        errors=("batch_size_exceeded", "conflict"),
    )


def _confirming(handler: RouteHandler, operation: Operation, need: Need, summary: str) -> Route:
    """What is done to all jobs that fit a filter."""
    return Route(
        BulkHandlers,
        handler,
        (f"POST /admin/jobs/bulk/{operation} adminBulk{operation.capitalize()}",),
        need,
        summary,
        {200: BulkConfirmed},
        body=_CONFIRMED_BODY,
        narrowing="parameter",
    )


PART: Final = Part(
    "Batches",
    "Many jobs in one request",
    (
        Route(
            BatchHandlers,
            BatchHandlers.push,
            ("POST /jobs/batch createJobBatch",),
            "enqueue",
            "Push jobs, all or none",
            {200: PushedBatch, 201: PushedBatch},
            "200 if none is new.",
            body=body_of(JobsBody, "jobs", jobs=list_of(ENVELOPE, 1, DEFAULT_LIMITS.max_batch_jobs)),
            query=(IDEMPOTENCY_KEY,),
            errors=(*PUSH_REFUSALS, "batch_size_exceeded"),
            narrowing="body",
            by_queue=True,
        ),
        Route(
            BulkHandlers,
            BulkHandlers.enqueue,
            ("POST /jobs/bulk bulkCreateJobs",),
            "enqueue",
            "Push jobs one by one",
            dict.fromkeys((201, 207, 422), BulkEnqueued),
            _PARTLY,
            body=body_of(JobsBody, "jobs", jobs=list_of(ENVELOPE, 1, _MOST), atomicity=_ATOMICITY, idempotency_key=_SENT_KEY),
            query=(IDEMPOTENCY_KEY,),
            errors=(*PUSH_REFUSALS, "batch_size_exceeded", "conflict"),
            narrowing="body",
            by_queue=True,
        ),
        _selecting(BulkHandlers.cancel, "cancel", "control", "Cancel jobs", "Active jobs are skipped. "),
        _selecting(BulkHandlers.retry, "retry", "control", "Retry jobs"),
        _selecting(BulkHandlers.delete, "delete", "destroy", "Delete finished jobs"),
        _selecting(BulkHandlers.reprioritise, "reprioritise", "control", "Give jobs another priority", "Not of fetched jobs. "),
        _confirming(BulkHandlers.confirmed_retry, "retry", "control", "Retry all jobs that fit a filter"),
        _confirming(BulkHandlers.confirmed_cancel, "cancel", "control", "Cancel all jobs that fit a filter"),
        _confirming(BulkHandlers.confirmed_delete, "delete", "destroy", "Delete all finished jobs that fit a filter"),
        _confirming(
            BulkHandlers.confirmed_reprioritise, "reprioritise", "control", "Give all jobs that fit a filter another priority"
        ),
    ),
    SHAPES,
)
