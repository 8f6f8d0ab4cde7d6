"""Many jobs in one request: pushed, or changed by ids or a filter (docs/batches.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from ojs_api import words
from ojs_api.jobs import Job, Priority, SentPriority, SkippedJob, State
from ojs_api.members import (
    MAY_LACK,
    REQUIRED,
    Count,
    Duration,
    ItemError,
    Moment,
    QueueName,
    Text,
    Undecoded,
    Uuid,
    Warnings,
    one_of,
    wanted,
    whole,
)
from ojs_api.operations import IDEMPOTENCY_KEY, PUSH_REFUSALS, Operation, Permission, Subject

MOST_IN_BATCH: Final = 10_000
MOST_IN_BULK: Final = 1_000
Change = Literal["cancel", "retry", "delete", "reprioritise"]
PushOutcome = Literal["created", "duplicate", "failed"]
ChangeOutcome = Literal["cancelled", "retried", "deleted", "reprioritised", "matched", "skipped"]

_NewJob = Annotated[
    Undecoded, Meta(extra_json_schema={"type": "object", "allOf": [{"$ref": "#/components/schemas/JobRequest"}]})
]
_Atomicity = Annotated[Literal["partial", "atomic"], Meta(description="`atomic`: all or none.")]
_SentKey = Annotated[str, Meta(max_length=256, description="In place of the header Idempotency-Key.")]
_SentTime = Annotated[
    str,
    Meta(description="An RFC 3339 timestamp with a zone, or a duration from now."),
    wanted("an RFC 3339 timestamp with a zone, or a duration such as -PT1H"),
]
_NewPriority = Annotated[SentPriority, Meta(description="What jobs are reprioritised to; of no other operation.")]
_Cursor = Annotated[str, Meta(description="`next_cursor` of the request before with the same filter.")]
_Ids = Annotated[
    list[Uuid],
    Meta(
        description=f"1 to {MOST_IN_BULK:,} of them.",
        extra_json_schema={"type": "array", "items": {"type": "string", "format": "uuid"}, "minItems": 1},
    ),
    wanted("a list of ids of jobs"),
]
_Places = Annotated[list[int], Meta(description="Places of jobs that a `unique` policy found.")]


class PushBatch(Struct, kw_only=True, omit_defaults=True):
    """Jobs of which all are pushed or none."""

    jobs: Annotated[list[_NewJob], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class PushJobs(Struct, kw_only=True, omit_defaults=True):
    """Jobs that are pushed one by one, unless `atomicity` says otherwise."""

    jobs: Annotated[list[_NewJob], Meta(min_length=1, max_length=MOST_IN_BULK)]
    atomicity: _Atomicity | None = None
    idempotency_key: _SentKey | None = None


class WhichJobs(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A filter. A job has to fit all of it."""

    type: Text | None = None
    queue: QueueName | None = None
    state: words.JobState | list[words.JobState] | None = None
    states: list[words.JobState] | None = None
    enqueued_before: _SentTime | None = None
    enqueued_after: _SentTime | None = None
    older_than: Duration | None = None
    priority: SentPriority | None = None
    meta: dict[str, Any] | None = None
    tag: Text | None = None
    error_type: Text | None = None
    worker: Text | None = None
    since: _SentTime | None = None
    until: _SentTime | None = None


class ChangeJobs(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Exactly one of `job_ids` and `filter`."""

    job_ids: _Ids | None = None
    filter: WhichJobs | None = None
    atomicity: _Atomicity | None = None
    confirm: Annotated[bool, Meta(description="Needed with a filter by states and times alone.")] | None = None
    dry_run: bool | None = None
    limit: (
        Annotated[int | float, whole(1, MOST_IN_BULK), Meta(description="Jobs of the filter that this request takes.")] | None
    ) = None
    cursor: _Cursor | None = None
    reason: str | None = None
    priority: _NewPriority | None = None
    idempotency_key: _SentKey | None = None


class ChangeAllJobs(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All jobs that fit a filter."""

    filter: Annotated[WhichJobs, REQUIRED] | None = None
    confirm: Annotated[bool, Meta(description="Must be true: this changes every job that fits.")] | None = None
    dry_run: bool | None = None
    limit: (
        Annotated[
            int | float,
            whole(1, MOST_IN_BULK),
            Meta(description="Jobs of the filter that this request takes; without it, up to 10,000."),
        ]
        | None
    ) = None
    cursor: _Cursor | None = None
    reason: str | None = None
    priority: _NewPriority | None = None


class PushedBatch(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The jobs of a batch, `count` of them. Places are those in the request."""

    jobs: list[Job]
    count: Count
    deduplicated: _Places | None = None
    warnings: Warnings | None = None


class JobSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job in short; of one that was in the way, what is known of it."""

    id: Uuid
    state: State
    type: str | None = None
    queue: str | None = None
    priority: Priority | None = None
    created_at: Moment | None = None
    scheduled_at: Moment | None = None


class PushedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one job of a push of several.

    Attributes:
        index: The job's position in the request, from 0.
    """

    index: Count
    status: Annotated[str, one_of(PushOutcome)]
    job: JobSummary | None = None
    error: ItemError | None = None
    warnings: Warnings = field(default_factory=list)


class BulkPushed(Struct, frozen=True, kw_only=True):
    """The outcomes of a push of several jobs (ojs-bulk-operations §5.2)."""

    total: Count
    succeeded: Count
    failed: Count
    items: list[PushedItem]


class ChangedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a change for one job.

    Attributes:
        index: The job's position in the request or page, from 0.
        reason: Why it was skipped.
    """

    index: Count
    job_id: Uuid
    status: Annotated[str, one_of(ChangeOutcome)]
    reason: str | None = None
    error: ItemError | None = None


class RestOfFilter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of answers about a filter: what the next request with it goes on with."""

    has_more: Annotated[bool, MAY_LACK] = field(default_factory=bool)
    next_cursor: Annotated[str, Meta(description="Goes into `cursor` to go on.")] | None = None
    remaining: Annotated[Count, Meta(description="How many it may find there; left out where it isn't known.")] | None = None
    dry_run: bool = False


class ChangedSelection(RestOfFilter, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a change of many jobs, or of one page of them.

    Attributes:
        total_matched: How many jobs match.
        next_cursor: Where the next request goes on. None if this was the last.
        remaining: How many jobs are left. None if the server didn't count.
    """

    total_matched: Count
    skipped: Count
    failed: Annotated[Count, Meta(description="Those of the skipped that were not at fault themselves.")]
    items: list[ChangedItem]


class BulkCancelled(ChangedSelection, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome for each job that was to be cancelled."""

    cancelled: Count


class BulkRetried(ChangedSelection, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome for each job that was to be retried."""

    retried: Count


class BulkDeleted(ChangedSelection, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome for each job that was to be deleted."""

    deleted: Count


class BulkReprioritised(ChangedSelection, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome for each job that was to get another priority."""

    reprioritised: Count


class BulkConfirmed(RestOfFilter, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome for all jobs that fit a filter (ojs-admin-api §8.1). A dry run says what would succeed."""

    action: Annotated[str, one_of(Change)]
    matched: Count
    succeeded: Count
    failed: Count
    errors: list[SkippedJob]
    sample: Annotated[list[JobSummary], Meta(description="Of a dry run: some that would be changed.")] | None = None


_PARTLY: Final = "207 when some items were refused, 422 when all were; each item says why. 503 if NATS hindered all."


def _selecting(change: Change, need: Permission, answer: type[Struct], summary: str, besides: str = "") -> Operation:
    """Return a change of jobs that are named, or of a page of those that fit a filter."""
    return Operation(
        f"bulk{change.capitalize()}Jobs",
        f"POST /jobs/bulk/{change}",
        need,
        summary,
        dict.fromkeys((200, 207, 422), answer),
        f"By ids, or by a filter page by page. {besides}{_PARTLY}",
        body=ChangeJobs,
        query=(IDEMPOTENCY_KEY,),
        errors=("batch_size_exceeded", "conflict"),
        narrowing="job",
    )


def _confirming(change: Change, need: Permission, summary: str) -> Operation:
    """Return a change of all jobs that fit a filter."""
    return Operation(
        f"adminBulk{change.capitalize()}",
        f"POST /admin/jobs/bulk/{change}",
        need,
        summary,
        {200: BulkConfirmed},
        body=ChangeAllJobs,
        narrowing="parameter",
    )


# fmt: off
PUSH_ALL: Final = Operation(
    "createJobBatch", "POST /jobs/batch", "enqueue", "Push jobs, all or none",
    {200: PushedBatch, 201: PushedBatch}, "200 if none is new.", body=PushBatch, query=(IDEMPOTENCY_KEY,),
    errors=(*PUSH_REFUSALS, "batch_size_exceeded"), narrowing="body", by_queue=True,
)
PUSH_EACH: Final = Operation(
    "bulkCreateJobs", "POST /jobs/bulk", "enqueue", "Push jobs one by one",
    dict.fromkeys((201, 207, 422), BulkPushed), _PARTLY, body=PushJobs, query=(IDEMPOTENCY_KEY,),
    errors=(*PUSH_REFUSALS, "batch_size_exceeded", "conflict"), narrowing="body", by_queue=True,
)
CANCEL: Final = _selecting("cancel", "control", BulkCancelled, "Cancel jobs", "Active jobs are skipped. ")
RETRY: Final = _selecting("retry", "control", BulkRetried, "Retry jobs")
DELETE: Final = _selecting("delete", "destroy", BulkDeleted, "Delete finished jobs")
REPRIORITISE: Final = _selecting(
    "reprioritise", "control", BulkReprioritised, "Give jobs another priority", "Not of fetched jobs. "
)
RETRY_ALL: Final = _confirming("retry", "control", "Retry all jobs that fit a filter")
CANCEL_ALL: Final = _confirming("cancel", "control", "Cancel all jobs that fit a filter")
DELETE_ALL: Final = _confirming("delete", "destroy", "Delete all finished jobs that fit a filter")
REPRIORITISE_ALL: Final = _confirming("reprioritise", "control", "Give all jobs that fit a filter another priority")
BULK: Final = Subject(
    "Batches", "Many jobs in one request",
    (
        PUSH_ALL, PUSH_EACH, CANCEL, RETRY, DELETE, REPRIORITISE, RETRY_ALL, CANCEL_ALL, DELETE_ALL, REPRIORITISE_ALL,
    ),
)
