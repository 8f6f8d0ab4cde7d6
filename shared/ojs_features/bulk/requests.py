"""Requests about many jobs: new ones, and a selection of existing ones by ids or a filter (ojs-bulk-operations §5-§8,
ojs-admin-api §8).
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct

from ojs_api.bulk import ChangeAllJobs, ChangeJobs, WhichJobs
from ojs_api.words import JobState
from ojs_engine.base.errors import OjsError, batch_too_large, indexed, invalid, too_large
from ojs_engine.base.fields import (
    absent,
    before_ms,
    integer,
    items_of,
    members_of,
    priority_of,
    queue_name,
    short_text,
    shown,
    struct_of,
)
from ojs_engine.base.ids import is_job_id
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import parse_moment
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.members import FOUND_BY
from ojs_engine.wire.jobs.enqueue import read_envelope
from ojs_engine.wire.members import AnswerWarning
from ojs_engine.wire.requests import request_of
from ojs_features.bulk.selection import Filter, Operation, Selection

_DEFAULT_STATES: Final[dict[Operation, tuple[State, ...]]] = {
    "cancel": (State.AVAILABLE, State.SCHEDULED),
    "retry": (State.DISCARDED,),
    "delete": (State.COMPLETED, State.CANCELLED, State.DISCARDED),
    "reprioritise": (State.AVAILABLE, State.SCHEDULED, State.PENDING),
}


def parse_confirmed(body: bytes, operation: Operation, now: int, limits: PayloadLimits) -> Selection:
    """POST /admin/jobs/bulk/… `{filter, confirm: true}`. Raises invalid_payload, invalid_request."""
    sent = request_of(body, ChangeAllJobs)
    if not (sent.confirm or sent.dry_run):
        raise invalid("confirm", f"this would {operation} every job that matches the filter; send confirm: true to do it")
    if sent.filter is None:
        raise invalid("filter", "filter is required: an object that says which jobs")
    wanted = _filter(sent.filter, operation, now, limits)
    return Selection(
        filter=wanted,
        dry_run=bool(sent.dry_run),
        limit=_limit(sent, limits),
        one_page=sent.limit is not None,
        cursor=sent.cursor or None,
        reason=_reason(sent.reason, operation, limits),
        priority=_priority(sent, operation),
    )


def parse_selection(body: bytes, operation: Operation, now: int, limits: PayloadLimits) -> Selection:
    """POST /jobs/bulk/{operation}. A broad filter needs `confirm: true`.

    Raises invalid_payload, invalid_request, batch_size_exceeded.
    """
    sent = request_of(body, ChangeJobs)
    if (sent.job_ids is None) == (sent.filter is None):
        raise invalid("job_ids", "exactly one of job_ids and filter is required")
    most = limits.max_bulk_jobs
    selection = Selection(
        atomic=sent.atomicity == "atomic",
        dry_run=bool(sent.dry_run),
        limit=_limit(sent, limits),
        cursor=sent.cursor or None,
        reason=_reason(sent.reason, operation, limits),
        priority=_priority(sent, operation),
        idempotency_key=sent.idempotency_key,
    )
    if sent.job_ids is not None:
        if not sent.job_ids:
            raise invalid("job_ids", "job_ids must name at least one job")
        if len(sent.job_ids) > most:
            raise batch_too_large(len(sent.job_ids), most)
        return msgspec.structs.replace(selection, job_ids=tuple([_job_id(one, at) for at, one in enumerate(sent.job_ids)]))
    assert sent.filter is not None
    wanted = _filter(sent.filter, operation, now, limits)
    if wanted.broad and not (sent.confirm or selection.dry_run):
        raise invalid("confirm", f"this filter selects jobs of every type and queue: send confirm: true to {operation} them")
    return msgspec.structs.replace(selection, filter=wanted)


def _limit(sent: ChangeJobs | ChangeAllJobs, limits: PayloadLimits) -> int:
    most = limits.max_bulk_jobs
    return most if sent.limit is None else integer(sent.limit, "limit", 1, most)


def _reason(sent: str | None, operation: Operation, limits: PayloadLimits) -> str:
    if sent is None:
        return "bulk"
    if operation != "cancel":
        raise invalid("reason", f"reason belongs to a cancellation; a {operation} has none")
    return short_text(sent, "reason", limits)


def _priority(sent: ChangeJobs | ChangeAllJobs, operation: Operation) -> int | None:
    if operation != "reprioritise":
        if sent.priority is not None:
            raise invalid("priority", f"priority belongs to a reprioritise; a {operation} has none")
        return None
    if sent.priority is None:
        if sent.dry_run:
            return None
        raise invalid("priority", "priority is required: an integer from -100 to 100")
    return priority_of(sent.priority, "priority")


def _job_id(text: str, index: int) -> str:
    lowered = text.lower()
    if not is_job_id(lowered):
        raise indexed(invalid(f"job_ids[{index}]", f"job_ids[{index}] must be the id of a job, not {shown(text)}"), index)
    return lowered


def _filter(given: WhichJobs, operation: Operation, now: int, limits: PayloadLimits) -> Filter:
    before = _moment(given.enqueued_before, "filter.enqueued_before", now)
    if given.older_than is not None:
        age = before_ms(given.older_than, "filter.older_than", now, limits)
        before = age if before is None else min(before, age)
    return Filter(
        states=_states(given.state if given.states is None else given.states, operation),
        type=_text(given.type, "filter.type", limits),
        queue=None if given.queue is None else queue_name(given.queue, "filter.queue", limits),
        enqueued_before=before,
        enqueued_after=_moment(given.enqueued_after, "filter.enqueued_after", now),
        priority=None if given.priority is None else priority_of(given.priority, "filter.priority"),
        meta=given.meta or None,
        **{by.name: _text(getattr(given, by.name), f"filter.{by.name}", limits) for by in FOUND_BY},
        since=_moment(given.since, "filter.since", now),
        until=_moment(given.until, "filter.until", now),
    )


def _text(sent: str | None, path: str, limits: PayloadLimits) -> str | None:
    return None if sent is None else short_text(sent, path, limits)


def _states(sent: JobState | list[JobState] | None, operation: Operation) -> tuple[State, ...]:
    if sent is None:
        return _DEFAULT_STATES[operation]
    return tuple(dict.fromkeys(map(State, [sent] if isinstance(sent, str) else sent)))


def _moment(text: str | None, path: str, now: int) -> int | None:
    if text is None:
        return None
    try:
        return parse_moment(text, now)[0]
    except (ValueError, OverflowError) as problem:
        raise invalid(path, f"{path} must be an RFC 3339 timestamp with a zone, not {shown(text)}: {problem}") from None


def atomicity_of(atomicity: str | None) -> bool:
    """Whether a request is to be done as a whole or not at all. Raises invalid_request."""
    if atomicity not in {None, "partial", "atomic"}:
        raise invalid("atomicity", f"atomicity must be partial or atomic, not {shown(atomicity)}")
    return atomicity == "atomic"


# New jobs


class JobList(Struct, frozen=True):
    """The envelopes of a request, unread."""

    jobs: list[Raw]
    atomic: bool = False
    idempotency_key: str | None = None


class JobsBody(Struct):
    """The members of `PushBatch` and `PushJobs`. A list that is too long isn't decoded."""

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


def read_draft(
    raw: Raw, index: int, now: int, limits: PayloadLimits, warnings: list[AnswerWarning], *, own_id: str | None = None
) -> Job:
    """One job of a list, as `parse_enqueue` reads one; errors say its index, and name its fields below it.

    `own_id` is the id of one that brings none; `warnings` takes what is wrong with a job that is taken.
    """
    try:
        if len(raw) > limits.max_envelope_bytes:
            raise too_large("envelope_too_large", "the job", len(raw), limits.max_envelope_bytes)
        envelope = members_of(raw, "job")
        if "type" not in envelope and "job" in envelope:
            envelope = members_of(envelope["job"], "job")
        return read_envelope(envelope, now, limits, otherwise=own_id, told=warnings)
    except OjsError as error:
        error.message = f"jobs[{index}]: {error.message}"
        raise indexed(error, index) from None
