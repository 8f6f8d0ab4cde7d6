"""Answers to requests about many jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_api.jobs import Job as JobAnswer
from ojs_api.jobs import SkippedJob
from ojs_api.members import ItemError
from ojs_engine.base.numbers import Priority
from ojs_engine.domain.job import Job, State
from ojs_engine.wire.errors import error_view
from ojs_engine.wire.jobs.job import job_members
from ojs_engine.wire.members import MOST_WARNINGS, AnswerWarning, Count, Timestamp, Uuid, Warnings, warnings_of, written
from ojs_features.bulk.outcomes import ItemOutcome, Rest, failed
from ojs_features.bulk.selection import Operation

DONE: Final[dict[Operation, str]] = {
    "cancel": "cancelled",
    "retry": "retried",
    "delete": "deleted",
    "reprioritise": "reprioritised",
}
"""What is said of the jobs that an operation has changed."""


class PushedBatch(Struct, kw_only=True, omit_defaults=True):
    """The jobs of a batch, `count` of them. Places are those in the request."""

    jobs: Sequence[Annotated[Raw, JobAnswer]]
    count: Count
    deduplicated: Annotated[list[int], Meta(description="Places of jobs that a `unique` policy found.")] | UnsetType = UNSET
    warnings: Warnings | UnsetType = UNSET


class JobSummary(Struct, kw_only=True, omit_defaults=True):
    """A job in short; of one that was in the way, what is known of it."""

    id: Uuid
    state: State
    type: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    created_at: Timestamp | UnsetType = UNSET
    scheduled_at: Timestamp | UnsetType = UNSET


class EnqueuedItem(Struct, kw_only=True, omit_defaults=True):
    """What became of one job of the request."""

    index: Count
    status: Literal["created", "duplicate", "failed"]
    job: JobSummary | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET
    warnings: Warnings | UnsetType = UNSET


class BulkEnqueued(Struct):
    """What became of each job (ojs-bulk-operations §5.2)."""

    total: Count
    succeeded: Count
    failed: Count
    items: list[EnqueuedItem]


class ChangedItem(Struct, kw_only=True, omit_defaults=True):
    """What became of one job that was named or found. One that was skipped says why."""

    index: Count
    job_id: Uuid
    status: Literal["cancelled", "retried", "deleted", "reprioritised", "matched", "skipped"]
    reason: str | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET


class RestOfFilter(Struct, kw_only=True, omit_defaults=True):
    """The base of answers about a filter: what the next request with it goes on with."""

    has_more: bool | UnsetType = UNSET
    next_cursor: Annotated[str, Meta(description="Goes into `cursor` to go on.")] | UnsetType = UNSET
    remaining: (
        Annotated[int, Meta(ge=0, description="How many it may find there; left out where it isn't known.")] | UnsetType
    ) = UNSET
    dry_run: bool | UnsetType = UNSET


class BulkChanged(RestOfFilter, kw_only=True, omit_defaults=True):
    """What became of each job (ojs-bulk-operations §6.2)."""

    total_matched: Count
    skipped: Count
    failed: Annotated[int, Meta(ge=0, description="Those of the skipped that were not at fault themselves.")]
    items: list[ChangedItem]


class BulkCancelled(BulkChanged, kw_only=True, omit_defaults=True):
    """What became of each job that was to be cancelled."""

    cancelled: Count


class BulkRetried(BulkChanged, kw_only=True, omit_defaults=True):
    """What became of each job that was to be retried."""

    retried: Count


class BulkDeleted(BulkChanged, kw_only=True, omit_defaults=True):
    """What became of each job that was to be deleted."""

    deleted: Count


class BulkReprioritised(BulkChanged, kw_only=True, omit_defaults=True):
    """What became of each job that was to get another priority."""

    reprioritised: Count


class BulkConfirmed(RestOfFilter, kw_only=True, omit_defaults=True):
    """What became of all jobs that fit a filter (ojs-admin-api §8.1). A dry run says what would succeed."""

    action: Operation
    matched: Count
    succeeded: Count
    failed: Count
    errors: list[SkippedJob]
    sample: Annotated[list[JobSummary], Meta(description="Of a dry run: some that would be changed.")] | UnsetType = UNSET


CHANGED: Final[dict[Operation, type[BulkCancelled | BulkRetried | BulkDeleted | BulkReprioritised]]] = {
    "cancel": BulkCancelled,
    "retry": BulkRetried,
    "delete": BulkDeleted,
    "reprioritise": BulkReprioritised,
}
"""What an operation on jobs that a request selects is answered with."""
_ROLLED_BACK: Final = ItemError(
    code="rolled_back",
    message="nothing was changed because other items were refused",
    retryable=written(UNSET),
)


def pushed_batch(jobs: Sequence[bytes], superfluous: list[int], warnings: list[AnswerWarning]) -> PushedBatch:
    """`jobs` are encoded. `superfluous` are the places of existing jobs that a unique policy found."""
    return PushedBatch(
        jobs=[Raw(job) for job in jobs],
        count=len(jobs),
        deduplicated=superfluous or UNSET,
        warnings=warnings[:MOST_WARNINGS] or UNSET,
    )


def bulk_enqueued(outcomes: Sequence[ItemOutcome], slips: Mapping[int, Sequence[AnswerWarning]]) -> tuple[int, BulkEnqueued]:
    """Status and answer of POST /jobs/bulk; `slips` are warnings by a job's place in the request."""
    total, refused = len(outcomes), sum(outcome.error is not None or outcome.rolled_back for outcome in outcomes)
    items = [_enqueued(index, outcome, slips.get(index, ())) for index, outcome in enumerate(outcomes)]
    return _status(total, refused, 201), BulkEnqueued(total, total - refused, refused, items)


def _enqueued(index: int, outcome: ItemOutcome, slips: Sequence[AnswerWarning]) -> EnqueuedItem:
    error = outcome.error
    if error is not None and error.code == "duplicate" and "existing_job_id" in error.details:
        existing = JobSummary(id=error.details["existing_job_id"], state=error.details["existing_job_state"])
        return EnqueuedItem(index=index, status="duplicate", job=existing, error=error_view(error))
    if outcome.job is not None:
        return EnqueuedItem(
            index=index,
            status="duplicate" if outcome.existing else "created",
            job=_summary(outcome.job),
            warnings=[*slips, *warnings_of(outcome.warnings)] or UNSET,
        )
    return EnqueuedItem(index=index, status="failed", error=_ROLLED_BACK if error is None else error_view(error))


def _summary(job: Job) -> JobSummary:
    answer = job_members(job)
    return JobSummary(**{name: answer[name] for name in JobSummary.__struct_fields__ if name in answer})


def bulk_changed(
    operation: Operation, outcomes: Sequence[ItemOutcome], *, dry_run: bool, rest: Rest | None
) -> tuple[int, BulkChanged]:
    """Status and answer of POST /jobs/bulk/cancel, retry, delete and reprioritise. `rest` is of a filter."""
    done = DONE[operation]
    items = [_changed(index, outcome, "matched" if dry_run else done) for index, outcome in enumerate(outcomes)]
    total, skipped = len(items), sum(item.status == "skipped" for item in items)
    numbers: dict[str, Any] = {"total_matched": total, done: 0 if dry_run else total - skipped, "skipped": skipped}
    answer = CHANGED[operation](**numbers, failed=sum(map(failed, outcomes)), items=items, **_of_filter(rest, dry_run=dry_run))
    return _status(total, 0 if dry_run else skipped, 200), answer


def _changed(index: int, outcome: ItemOutcome, done: Any) -> ChangedItem:
    if outcome.error is None and not outcome.rolled_back:
        return ChangedItem(index=index, job_id=outcome.job_id, status=done)
    error = _ROLLED_BACK if outcome.error is None else error_view(outcome.error)
    return ChangedItem(index=index, job_id=outcome.job_id, status="skipped", reason=error.message, error=error)


def _of_filter(rest: Rest | None, *, dry_run: bool) -> dict[str, Any]:
    """The members of a `RestOfFilter`."""
    view: dict[str, Any] = {"dry_run": True} if dry_run else {}
    if rest is not None:
        view |= {"has_more": rest.cursor is not None, "next_cursor": rest.cursor or UNSET}
        if rest.remaining is not None:
            view["remaining"] = rest.remaining
    return view


def bulk_confirmed(
    operation: Operation, outcomes: Sequence[ItemOutcome], *, sample: Sequence[Job] | None, rest: Rest
) -> BulkConfirmed:
    """The summary, with what is left for the next request. A dry run has a `sample`."""
    errors = [SkippedJob(one.job_id, one.error.message) for one in outcomes if one.error is not None]
    return BulkConfirmed(
        action=operation,
        matched=len(outcomes),
        succeeded=len(outcomes) - len(errors),
        failed=len(errors),
        errors=errors,
        sample=UNSET if sample is None else [_summary(job) for job in sample],
        **_of_filter(rest, dry_run=sample is not None),
    )


def _status(total: int, refused: int, success: int) -> int:
    if not refused:
        return success
    return 422 if refused == total else 207
