"""Batch push and bulk enqueue, and the answers to all requests about many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from ojs_core.base.errors import OjsError, batch_too_large, indexed, invalid, too_large
from ojs_core.base.fields import absent, items_of, members_of, struct_of
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.domain.job import Job
from ojs_core.operations.outcomes import ItemOutcome, Rest
from ojs_core.operations.selection import Operation
from ojs_core.wire.enqueue import read_envelope
from ojs_core.wire.errors import error_view
from ojs_core.wire.job import job_answer
from ojs_core.wire.members import encode, members
from ojs_core.wire.selection import atomicity_of

DONE: Final[dict[Operation, str]] = {"cancel": "cancelled", "retry": "retried", "delete": "deleted"}
"""What is said of the jobs that an operation has changed."""
_SUMMARY: Final = ("id", "type", "state", "queue", "priority", "created_at", "scheduled_at")
_ROLLED_BACK: Final = {"code": "rolled_back", "message": "nothing was changed because other items were refused"}


# Requests


class JobList(Struct, frozen=True):
    """The envelopes of a request, unread."""

    jobs: list[Raw]
    atomic: bool = False
    idempotency_key: str | None = None


class JobsBody(Struct):
    jobs: Raw = Raw()
    atomicity: str | None = None
    idempotency_key: str | None = None


def parse_batch(body: bytes, limits: PayloadLimits) -> JobList:
    """POST /jobs/batch. Raises invalid_payload, invalid_request, batch_size_exceeded."""
    return JobList(_jobs(struct_of(body, JobsBody), limits.max_batch_jobs))


def parse_bulk_enqueue(body: bytes, limits: PayloadLimits) -> JobList:
    """POST /jobs/bulk. Raises as `parse_batch`."""
    sent = struct_of(body, JobsBody)
    return JobList(_jobs(sent, limits.max_bulk_jobs), atomicity_of(sent.atomicity), sent.idempotency_key)


def _jobs(sent: JobsBody, most: int) -> list[Raw]:
    jobs = [] if absent(sent.jobs) else items_of(sent.jobs, "jobs", most)
    if not jobs:
        raise invalid("jobs", "jobs is required: a list of at least one job")
    if len(jobs) > most:
        raise batch_too_large(len(jobs), most)
    return jobs


def read_draft(raw: Raw, index: int, now: int, limits: PayloadLimits, *, otherwise: str | None = None) -> Job:
    """One job of a list, as `parse_enqueue` reads one; errors say its index, and name its fields below it.

    `otherwise` is the id of one that brings none.
    """
    try:
        if len(raw) > limits.max_envelope_bytes:
            raise too_large("envelope_too_large", "the job", len(raw), limits.max_envelope_bytes)
        envelope = members_of(raw, "job")
        if "type" not in envelope and "job" in envelope:
            envelope = members_of(envelope["job"], "job")
        return read_envelope(envelope, now, limits, otherwise=otherwise)
    except OjsError as error:
        error.message = f"jobs[{index}]: {error.message}"
        raise indexed(error, index) from None


def idempotency_key(header: str | None, sent: str | None, limits: PayloadLimits) -> str | None:
    """The key of a request; the header wins. Raises invalid_request for one that is empty or too long."""
    key = sent if header is None else header
    if key is not None and not 0 < len(key) <= limits.max_idempotency_chars:
        most = limits.max_idempotency_chars
        raise invalid("idempotency_key", f"idempotency_key must have 1 to {most} characters; this one has {len(key)}")
    return key


# Answers


def batch_body(jobs: Sequence[bytes], superfluous: Sequence[int], dropped: Sequence[int]) -> bytes:
    """`jobs` are encoded views. `superfluous` are the places of existing jobs that a unique policy found, `dropped` those of
    jobs in the request that middleware left out. `enqueued` and `failed` are what the CLI reads.
    """
    more: dict[str, Any] = {"count": len(jobs), "enqueued": len(jobs) - len(superfluous), "failed": 0}
    if superfluous:
        more["deduplicated"] = superfluous
    if dropped:
        more["dropped"] = dropped
    return b'{"jobs":[' + b",".join(jobs) + b"]," + encode(more)[1:]


def bulk_enqueue_body(outcomes: Sequence[ItemOutcome]) -> tuple[int, bytes]:
    """Status and body of POST /jobs/bulk (ojs-bulk-operations §5.2)."""
    items = [_enqueued_item(index, outcome) for index, outcome in enumerate(outcomes)]
    failed = sum(outcome.error is not None or outcome.rolled_back for outcome in outcomes)
    total = len(outcomes)
    body = encode({"total": total, "succeeded": total - failed, "failed": failed, "items": items})
    return _status(total, failed, 201), body


def _enqueued_item(index: int, outcome: ItemOutcome) -> dict[str, Any]:
    item: dict[str, Any] = {"index": index}
    if outcome.error is not None and outcome.error.code == "duplicate":
        details = outcome.error.details
        existing = {"id": details.get("existing_job_id"), "state": details.get("existing_job_state")}
        return item | {"status": "duplicate", "job": existing, "error": error_view(outcome.error)}
    if outcome.job is not None:
        return item | {"status": "duplicate" if outcome.existing else "created", "job": _summary(outcome.job)}
    return item | {"status": "failed", "error": _ROLLED_BACK if outcome.error is None else error_view(outcome.error)}


def _summary(job: Job) -> dict[str, Any]:
    view = members(job_answer(job))
    return {name: view[name] for name in _SUMMARY if name in view}


def bulk_body(operation: Operation, outcomes: Sequence[ItemOutcome], *, dry_run: bool, rest: Rest | None) -> tuple[int, bytes]:
    """Status and body of POST /jobs/bulk/cancel, retry and delete (ojs-bulk-operations §6.2). An item that is skipped says why.

    `rest` is of a filter: what the next request with it goes on with.
    """
    done = "matched" if dry_run else DONE[operation]
    items = []
    for index, outcome in enumerate(outcomes):
        item: dict[str, Any] = {"index": index, "job_id": outcome.job_id}
        if outcome.error is not None:
            item |= {"status": "skipped", "reason": outcome.error.message, "error": error_view(outcome.error)}
        elif outcome.rolled_back:
            item |= {"status": "skipped", "reason": _ROLLED_BACK["message"], "error": _ROLLED_BACK}
        else:
            item["status"] = done
        items.append(item)
    skipped = sum(item["status"] == "skipped" for item in items)
    total = len(items)
    body: dict[str, Any] = {
        "total_matched": total,
        DONE[operation]: 0 if dry_run else total - skipped,
        "skipped": skipped,
        "failed": sum(outcome.error is not None and outcome.error.info.status >= 500 for outcome in outcomes),
        "items": items,
    }
    if dry_run:
        body["dry_run"] = True
    if rest is not None:
        body |= _rest_view(rest)
    return _status(total, 0 if dry_run else skipped, 200), encode(body)


def _rest_view(rest: Rest) -> dict[str, Any]:
    view: dict[str, Any] = {"has_more": rest.cursor is not None}
    if rest.cursor is not None:
        view["next_cursor"] = rest.cursor
    return view if rest.remaining is None else view | {"remaining": rest.remaining}


def confirmed_body(operation: Operation, outcomes: Sequence[ItemOutcome], *, dry_run: bool, rest: Rest) -> bytes:
    """The summary (ojs-admin-api §8.1), with what is left for the next request. A dry run says what would succeed."""
    errors = [{"job_id": one.job_id, "error": one.error.message} for one in outcomes if one.error is not None]
    body: dict[str, Any] = {"action": operation, "matched": len(outcomes), "succeeded": len(outcomes) - len(errors)}
    body |= {"failed": len(errors), "errors": errors} | _rest_view(rest)
    return encode(body | {"dry_run": True} if dry_run else body)


def _status(total: int, failed: int, success: int) -> int:
    if not failed:
        return success
    return 422 if failed == total else 207
