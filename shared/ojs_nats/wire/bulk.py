"""Requests and answers about many jobs: batch push, bulk enqueue, bulk cancel, retry and delete (requirements §13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ojs_nats.errors import OjsError, batch_too_large, indexed, invalid, too_large
from ojs_nats.job import NOTHING, Job, State
from ojs_nats.wire.enqueue import read_envelope
from ojs_nats.wire.errors import error_view
from ojs_nats.wire.fields import (
    absent,
    before_ms,
    integer,
    members_of,
    queue_name,
    short_text,
    shown,
    struct_of,
    text_list,
    value_of,
)
from ojs_nats.wire.ids import is_job_id
from ojs_nats.wire.limits import Limits
from ojs_nats.wire.output import encode, job_view
from ojs_nats.wire.times import parse_moment

__all__ = [
    "DONE",
    "Filter",
    "FilterBody",
    "JobList",
    "JobsBody",
    "Operation",
    "Outcome",
    "PriorityBody",
    "Rest",
    "Selection",
    "SelectionBody",
    "batch_body",
    "bulk_body",
    "bulk_enqueue_body",
    "confirmed_body",
    "idempotency_key",
    "parse_batch",
    "parse_bulk_enqueue",
    "parse_confirmed",
    "parse_priority",
    "parse_selection",
    "priority_body",
    "read_draft",
]

Operation = Literal["cancel", "retry", "delete"]

DONE: Final[dict[Operation, str]] = {"cancel": "cancelled", "retry": "retried", "delete": "deleted"}
"""What is said of the jobs that an operation has changed."""
_DEFAULT_STATES: Final[dict[Operation, tuple[State, ...]]] = {
    "cancel": (State.AVAILABLE, State.SCHEDULED),
    "retry": (State.DISCARDED,),
    "delete": (State.COMPLETED, State.CANCELLED, State.DISCARDED),
}
_SUMMARY: Final = ("id", "type", "state", "queue", "priority", "created_at", "scheduled_at")
_ROLLED_BACK: Final = {"code": "rolled_back", "message": "nothing was changed because other items were refused"}


# Requests


class JobList(Struct, frozen=True):
    """The envelopes of a request, unread."""

    jobs: list[Raw]
    atomic: bool = False
    idempotency_key: str | None = None


class JobsBody(Struct):
    jobs: list[Raw] | None = None
    atomicity: str | None = None
    idempotency_key: str | None = None


def parse_batch(body: bytes, limits: Limits) -> JobList:
    """POST /jobs/batch. Raises invalid_payload, invalid_request, batch_size_exceeded."""
    return JobList(_jobs(struct_of(body, JobsBody), limits.max_batch_jobs))


def parse_bulk_enqueue(body: bytes, limits: Limits) -> JobList:
    """POST /jobs/bulk. Raises as `parse_batch`."""
    sent = struct_of(body, JobsBody)
    return JobList(_jobs(sent, limits.max_bulk_jobs), _atomic(sent.atomicity), sent.idempotency_key)


def _jobs(sent: JobsBody, most: int) -> list[Raw]:
    if not sent.jobs:
        raise invalid("jobs", "jobs is required: a list of at least one job")
    if len(sent.jobs) > most:
        raise batch_too_large(len(sent.jobs), most)
    return sent.jobs


def _atomic(atomicity: str | None) -> bool:
    if atomicity not in {None, "partial", "atomic"}:
        raise invalid("atomicity", f"atomicity must be partial or atomic, not {shown(atomicity)}")
    return atomicity == "atomic"


def read_draft(raw: Raw, index: int, now: int, limits: Limits) -> Job:
    """One job of a list, as `parse_enqueue` reads one; errors say its index, and name its fields below it."""
    try:
        if len(raw) > limits.max_envelope_bytes:
            raise too_large("envelope_too_large", "the job", len(raw), limits.max_envelope_bytes)
        envelope = members_of(raw, "job")
        if "type" not in envelope and "job" in envelope:
            envelope = members_of(envelope["job"], "job")
        return read_envelope(envelope, now, limits)
    except OjsError as error:
        error.message = f"jobs[{index}]: {error.message}"
        raise indexed(error, index) from None


def idempotency_key(header: str | None, sent: str | None, limits: Limits) -> str | None:
    """The key of a request; the header wins. Raises invalid_request for one that is empty or too long."""
    key = sent if header is None else header
    if key is not None and not 0 < len(key) <= limits.max_idempotency_chars:
        most = limits.max_idempotency_chars
        raise invalid("idempotency_key", f"idempotency_key must have 1 to {most} characters; this one has {len(key)}")
    return key


class Filter(Struct, frozen=True, kw_only=True):
    """Which jobs an operation is about; what is None is not asked about. Times in Unix milliseconds; those of
    the enqueuing are exclusive, `since` and `until` bound the creation and are inclusive.
    """

    states: tuple[State, ...]
    type: str | None = None
    queue: str | None = None
    enqueued_before: int | None = None
    enqueued_after: int | None = None
    priority: int | None = None
    meta: dict[str, Any] | None = None
    since: int | None = None
    until: int | None = None

    @property
    def everything(self) -> bool:
        """Whether it selects by nothing but the state."""
        chosen = (self.type, self.queue, self.enqueued_before, self.enqueued_after, self.priority, self.meta)
        return all(value is None for value in (*chosen, self.since, self.until))


class Selection(Struct, frozen=True, kw_only=True):
    """The jobs of a bulk operation: some ids, or a filter, of which one request takes up to `limit` jobs from `cursor` on."""

    job_ids: tuple[str, ...] = ()
    filter: Filter | None = None
    atomic: bool = False
    dry_run: bool = False
    limit: int
    cursor: str | None = None
    idempotency_key: str | None = None


class ConfirmedBody(Struct, forbid_unknown_fields=True):
    filter: Raw = NOTHING
    confirm: bool | None = None
    cursor: str | None = None


class SelectionBody(ConfirmedBody):
    job_ids: list[str] | None = None
    atomicity: str | None = None
    dry_run: bool | None = None
    limit: int | None = None
    idempotency_key: str | None = None


class FilterBody(Struct, forbid_unknown_fields=True):
    type: str | None = None
    queue: str | None = None
    state: str | list[str] | None = None
    states: list[str] | None = None
    enqueued_before: str | None = None
    enqueued_after: str | None = None
    older_than: str | int | float | None = None
    priority: int | None = None
    meta: dict[str, Any] | None = None
    since: str | None = None
    until: str | None = None


def parse_confirmed(body: bytes, operation: Operation, now: int, limits: Limits) -> Selection:
    """POST /admin/jobs/bulk/… `{filter, confirm: true}`. Raises invalid_payload, invalid_request."""
    sent = struct_of(body, ConfirmedBody)
    if not sent.confirm:
        raise invalid("confirm", f"this would {operation} every job that matches the filter; send confirm: true to do it")
    if absent(sent.filter):
        raise invalid("filter", "filter is required: an object that says which jobs")
    wanted = _filter(value_of(sent.filter, "filter", limits), operation, now, limits)
    return Selection(filter=wanted, limit=limits.max_bulk_jobs, cursor=sent.cursor or None)


def parse_selection(body: bytes, operation: Operation, now: int, limits: Limits, *, confirmed: bool) -> Selection:
    """POST /jobs/bulk/cancel, retry, delete. A filter of nothing but states needs `confirm: true` unless it is `confirmed`.

    Raises invalid_payload, invalid_request, batch_size_exceeded.
    """
    sent = struct_of(body, SelectionBody)
    if (sent.job_ids is None) == absent(sent.filter):
        raise invalid("job_ids", "exactly one of job_ids and filter is required")
    most = limits.max_bulk_jobs
    selection = Selection(
        atomic=_atomic(sent.atomicity),
        dry_run=bool(sent.dry_run),
        limit=most if sent.limit is None else integer(sent.limit, "limit", 1, most),
        cursor=sent.cursor or None,
        idempotency_key=sent.idempotency_key,
    )
    if sent.job_ids is not None:
        if not sent.job_ids:
            raise invalid("job_ids", "job_ids must name at least one job")
        if len(sent.job_ids) > most:
            raise batch_too_large(len(sent.job_ids), most)
        return msgspec.structs.replace(selection, job_ids=tuple([_job_id(one, at) for at, one in enumerate(sent.job_ids)]))
    wanted = _filter(value_of(sent.filter, "filter", limits), operation, now, limits)
    if wanted.everything and not (sent.confirm or confirmed or selection.dry_run):
        raise invalid("confirm", f"this filter selects jobs of every type and queue: send confirm: true to {operation} them")
    return msgspec.structs.replace(selection, filter=wanted)


def _job_id(text: str, index: int) -> str:
    lowered = text.lower()
    if not is_job_id(lowered):
        raise indexed(invalid(f"job_ids[{index}]", f"job_ids[{index}] must be the id of a job, not {shown(text)}"), index)
    return lowered


def _filter(sent: Any, operation: Operation, now: int, limits: Limits) -> Filter:
    try:
        given = msgspec.convert(sent, FilterBody)
    except msgspec.ValidationError as error:
        raise invalid("filter", f"filter: {error}".replace("`", "")) from None
    before = _moment(given.enqueued_before, "filter.enqueued_before", now)
    if given.older_than is not None:
        age = before_ms(given.older_than, "filter.older_than", now, limits)
        before = age if before is None else min(before, age)
    return Filter(
        states=_states(given.state if given.states is None else given.states, operation, limits),
        type=None if given.type is None else short_text(given.type, "filter.type", limits),
        queue=None if given.queue is None else queue_name(given.queue, "filter.queue", limits),
        enqueued_before=before,
        enqueued_after=_moment(given.enqueued_after, "filter.enqueued_after", now),
        priority=None if given.priority is None else integer(given.priority, "filter.priority", -100, 100),
        meta=given.meta or None,
        since=_moment(given.since, "filter.since", now),
        until=_moment(given.until, "filter.until", now),
    )


def _states(sent: str | list[str] | None, operation: Operation, limits: Limits) -> tuple[State, ...]:
    if sent is None:
        return _DEFAULT_STATES[operation]
    listed = text_list([sent] if isinstance(sent, str) else sent, "filter.state", len(State), limits)
    for state in listed:
        if state not in tuple(State):
            raise invalid("filter.state", f"filter.state must list states such as available, not {shown(state)}")
    return tuple(dict.fromkeys(State(state) for state in listed))


def _moment(text: str | None, path: str, now: int) -> int | None:
    if text is None:
        return None
    try:
        return parse_moment(text, now)[0]
    except (ValueError, OverflowError) as problem:
        raise invalid(path, f"{path} must be an RFC 3339 timestamp with a zone, not {shown(text)}: {problem}") from None


class PriorityBody(Struct):
    priority: int | str | None = None


def parse_priority(body: bytes) -> int:
    """PATCH /jobs/{id}: the new priority, -100 to 100."""
    sent = struct_of(body, PriorityBody).priority
    if sent is None:
        raise invalid("priority", "priority is required: an integer from -100 to 100")
    return integer(sent, "priority", -100, 100)


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


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one item of a bulk request. `existing`: the job was there before, or makes this one superfluous."""

    job: Job | None = None
    job_id: str | None = None
    existing: bool = False
    error: OjsError | None = None
    rolled_back: bool = False


def bulk_enqueue_body(outcomes: Sequence[Outcome]) -> tuple[int, bytes]:
    """Status and body of POST /jobs/bulk (ojs-bulk-operations §5.2, C39)."""
    items = [_enqueued_item(index, outcome) for index, outcome in enumerate(outcomes)]
    failed = sum(outcome.error is not None or outcome.rolled_back for outcome in outcomes)
    total = len(outcomes)
    body = encode({"total": total, "succeeded": total - failed, "failed": failed, "items": items})
    return _status(total, failed, 201), body


def _enqueued_item(index: int, outcome: Outcome) -> dict[str, Any]:
    item: dict[str, Any] = {"index": index}
    if outcome.error is not None and outcome.error.code == "duplicate":
        details = outcome.error.details
        existing = {"id": details.get("existing_job_id"), "state": details.get("existing_job_state")}
        return item | {"status": "duplicate", "job": existing, "error": error_view(outcome.error)}
    if outcome.job is not None:
        return item | {"status": "duplicate" if outcome.existing else "created", "job": _summary(outcome.job)}
    return item | {"status": "failed", "error": _ROLLED_BACK if outcome.error is None else error_view(outcome.error)}


def _summary(job: Job) -> dict[str, Any]:
    view = job_view(job)
    return {name: view[name] for name in _SUMMARY if name in view}


def bulk_body(operation: Operation, outcomes: Sequence[Outcome], *, dry_run: bool, rest: Rest | None) -> tuple[int, bytes]:
    """Status and body of POST /jobs/bulk/cancel, retry and delete (§6.2). An item that is skipped says why.

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


class Rest(NamedTuple):
    """What a filter has still before it: where it goes on, and how many jobs it may find there if that is known."""

    cursor: str | None
    remaining: int | None


def _rest_view(rest: Rest) -> dict[str, Any]:
    view: dict[str, Any] = {"has_more": rest.cursor is not None}
    if rest.cursor is not None:
        view["next_cursor"] = rest.cursor
    return view if rest.remaining is None else view | {"remaining": rest.remaining}


def confirmed_body(operation: Operation, outcomes: Sequence[Outcome], rest: Rest) -> bytes:
    """The summary of the admin API (§8.1), with what is left for the next request."""
    errors = [{"job_id": one.job_id, "error": one.error.message} for one in outcomes if one.error is not None]
    body: dict[str, Any] = {"action": operation, "matched": len(outcomes), "succeeded": len(outcomes) - len(errors)}
    return encode(body | {"failed": len(errors), "errors": errors} | _rest_view(rest))


def _status(total: int, failed: int, success: int) -> int:
    if not failed:
        return success
    return 422 if failed == total else 207


def priority_body(job: Job, previous: int) -> bytes:
    """PATCH /jobs/{id} (ojs-priority)."""
    return encode({"id": job.id, "priority": job.priority, "previous_priority": previous, "job": job_view(job)})
