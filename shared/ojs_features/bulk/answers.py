"""Answers to requests about many jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Raw

from ojs_api.bulk import (
    BulkCancelled,
    BulkConfirmed,
    BulkDeleted,
    BulkPushed,
    BulkReprioritised,
    BulkRetried,
    Change,
    ChangedItem,
    ChangedSelection,
    JobSummary,
    PushedBatch,
    PushedItem,
)
from ojs_api.jobs import SkippedJob
from ojs_api.members import ItemError
from ojs_engine.domain.job import Job
from ojs_engine.wire.errors import error_view
from ojs_engine.wire.jobs.job import job_members
from ojs_engine.wire.members import MOST_WARNINGS, AnswerWarning, warnings_of, written
from ojs_features.bulk.outcomes import ItemOutcome, Rest, failed

DONE: Final[dict[Change, str]] = {
    "cancel": "cancelled",
    "retry": "retried",
    "delete": "deleted",
    "reprioritise": "reprioritised",
}
"""By the change, the word for jobs that have been changed."""


CHANGED: Final[dict[Change, type[BulkCancelled | BulkRetried | BulkDeleted | BulkReprioritised]]] = {
    "cancel": BulkCancelled,
    "retry": BulkRetried,
    "delete": BulkDeleted,
    "reprioritise": BulkReprioritised,
}
"""By the change of jobs that a request selects, its answer."""
_ROLLED_BACK: Final = ItemError(
    code="rolled_back",
    message="nothing was changed because other items were refused",
    retryable=written(UNSET),
)


def pushed_batch(jobs: Sequence[bytes], superfluous: list[int], warnings: list[AnswerWarning]) -> PushedBatch:
    """Return the answer to a batch. `jobs` are encoded, `superfluous` are the places of existing jobs that a policy found."""
    return PushedBatch(
        jobs=[written(Raw(job)) for job in jobs],
        count=len(jobs),
        deduplicated=superfluous or None,
        warnings=warnings[:MOST_WARNINGS] or None,
    )


def bulk_enqueued(outcomes: Sequence[ItemOutcome], slips: Mapping[int, Sequence[AnswerWarning]]) -> tuple[int, BulkPushed]:
    """Status and answer of POST /jobs/bulk; `slips` are warnings by a job's place in the request."""
    total, refused = len(outcomes), sum(outcome.error is not None or outcome.rolled_back for outcome in outcomes)
    items = [_enqueued(index, outcome, slips.get(index, ())) for index, outcome in enumerate(outcomes)]
    return _status(total, refused, 201), BulkPushed(total=total, succeeded=total - refused, failed=refused, items=items)


def _enqueued(index: int, outcome: ItemOutcome, slips: Sequence[AnswerWarning]) -> PushedItem:
    error = outcome.error
    if error is not None and error.code == "duplicate" and "existing_job_id" in error.details:
        existing = JobSummary(id=error.details["existing_job_id"], state=error.details["existing_job_state"])
        return PushedItem(index=index, status="duplicate", job=existing, error=error_view(error))
    if outcome.job is not None:
        return PushedItem(
            index=index,
            status="duplicate" if outcome.existing else "created",
            job=_summary(outcome.job),
            warnings=[*slips, *warnings_of(outcome.warnings)],
        )
    return PushedItem(index=index, status="failed", error=_ROLLED_BACK if error is None else error_view(error))


def _summary(job: Job) -> JobSummary:
    answer = job_members(job)
    return JobSummary(**{name: answer[name] for name in JobSummary.__struct_fields__ if name in answer})


def bulk_changed(
    operation: Change, outcomes: Sequence[ItemOutcome], *, dry_run: bool, rest: Rest | None
) -> tuple[int, ChangedSelection]:
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
    """Return the members of a `RestOfFilter`."""
    if rest is None:
        return {"dry_run": dry_run, "has_more": written(UNSET)}
    return {
        "dry_run": dry_run,
        "has_more": rest.cursor is not None,
        "next_cursor": rest.cursor or None,
        "remaining": rest.remaining,
    }


def bulk_confirmed(
    operation: Change, outcomes: Sequence[ItemOutcome], *, sample: Sequence[Job] | None, rest: Rest
) -> BulkConfirmed:
    """The summary, with what is left for the next request. A dry run has a `sample`."""
    errors = [SkippedJob(job_id=one.job_id, error=one.error.message) for one in outcomes if one.error is not None]
    return BulkConfirmed(
        action=operation,
        matched=len(outcomes),
        succeeded=len(outcomes) - len(errors),
        failed=len(errors),
        errors=errors,
        sample=None if sample is None else [_summary(job) for job in sample],
        **_of_filter(rest, dry_run=sample is not None),
    )


def _status(total: int, refused: int, success: int) -> int:
    if not refused:
        return success
    return 422 if refused == total else 207
