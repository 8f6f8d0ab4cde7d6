"""A job's history, lineage and attempts, and failed attempts of all jobs (ojs-execution-history §4, §5, §7; docs/adr/007)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_engine.base.errors import invalid, not_found
from ojs_engine.base.fields import shown
from ojs_engine.base.times import format_ms
from ojs_engine.domain.events.envelope import trace_id
from ojs_engine.domain.events.history import Actor, ActorKind, Happening, history_of
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.past import Attempt, attempts_of
from ojs_engine.wire.members import Count, Timestamp, Uuid, given, timestamp
from ojs_engine.wire.pages import Page, Pagination

_CURSOR: Final = re.compile(r"([1-9][0-9]{0,9})\.([0-9])", re.ASCII)
_ATTEMPT: Final = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


class ActorAnswer(Struct, kw_only=True, omit_defaults=True):
    """Who did it; `id` is a worker's."""

    type: ActorKind
    id: str | UnsetType = UNSET


class HistoryEvent(Struct, kw_only=True, omit_defaults=True):
    """One event of a job's history."""

    id: str
    job_id: Uuid
    event_type: Annotated[str, Meta(examples=["job.attempt_failed"])]
    timestamp: Timestamp
    actor: ActorAnswer | UnsetType = UNSET
    data: dict[str, Any]


class JobHistoryPage(Struct, kw_only=True, omit_defaults=True):
    """Events of one job, the oldest first."""

    events: list[HistoryEvent]
    total: Annotated[int, Meta(ge=0, description="Of all pages.")]
    complete: Annotated[bool, Meta(description="False if the oldest events are gone: 64 transitions are kept.")]
    next_cursor: Annotated[str, Meta(description="Goes into `cursor` for the next page.")] | UnsetType = UNSET


class JobLineage(Struct, kw_only=True, omit_defaults=True):
    """Where a job comes from: what its client said of parent and root, and the workflow that it is part of."""

    job_id: Uuid
    parent_id: str | UnsetType = UNSET
    root_id: str | UnsetType = UNSET
    workflow_id: str | UnsetType = UNSET
    workflow_step: Annotated[str, Meta(description="Its id in the workflow.")] | UnsetType = UNSET


class AttemptError(Struct):
    """Why an attempt failed."""

    code: str
    type: str
    message: str


class AttemptTrace(Struct, kw_only=True, omit_defaults=True):
    """One attempt. `outcome` is the word of the job's log for what ended it, `state` the one that it led to."""

    attempt: Count
    started_at: Timestamp
    worker_id: str | UnsetType = UNSET
    ended_at: Timestamp | UnsetType = UNSET
    duration_ms: Count | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    state: State | UnsetType = UNSET
    error: AttemptError | UnsetType = UNSET
    retry_generation: Annotated[int, Meta(ge=0, description="How often the job had been retried by hand.")] | UnsetType = UNSET


class JobTraces(Struct, kw_only=True, omit_defaults=True):
    """A job's attempts, the oldest first, as far as its log goes back."""

    job_id: Uuid
    traces: list[AttemptTrace]
    trace_id: Annotated[str, Meta(description="Of the distributed trace that the job belongs to.")] | UnsetType = UNSET


class OneAttemptTrace(Struct, kw_only=True, omit_defaults=True):
    """One attempt of a job."""

    job_id: Uuid
    trace: AttemptTrace
    trace_id: str | UnsetType = UNSET


class FailureAnswer(Struct, kw_only=True, omit_defaults=True):
    """One failed attempt of some job."""

    job_id: Uuid
    job_type: str
    queue: str
    attempt: Count
    error: AttemptError
    failed_at: Timestamp
    state: State | UnsetType = UNSET
    worker_id: str | UnsetType = UNSET
    duration_ms: Count | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET


class FailurePage(Struct, kw_only=True):
    """Failed attempts, the latest first."""

    failures: list[FailureAnswer]
    pagination: Pagination


class _Failed(Struct):
    job_id: str
    job_type: str
    queue: str
    attempt: int
    error: AttemptError
    state: State | UnsetType = UNSET
    worker_id: str | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET


class _Event(Struct):
    time: str
    data: _Failed


_decode_event: Final = msgspec.json.Decoder(_Event).decode


def history_page(job: Job, page: Page) -> JobHistoryPage:
    """A page of the job's history. The cursor names the last event of the page before, which may be gone by now.

    Raises OjsError invalid_request for a cursor that no page of this job gave.
    """
    events, complete = history_of(job)
    start = (0 if page.cursor is None else _after(page.cursor, job, events)) + page.offset
    found = events[start : start + page.limit]
    more = bool(found) and start + page.limit < len(events)
    return JobHistoryPage(
        events=[_event(job, one) for one in found],
        total=len(events),
        complete=complete,
        next_cursor=f"{found[-1].entry.n}.{found[-1].place}" if more else UNSET,
    )


def job_lineage(job: Job) -> JobLineage:
    """What is stored of where the job comes from. Members of the envelope are told as far as they are text."""
    member = job.workflow
    return JobLineage(
        job_id=job.id,
        parent_id=_text(job, "parent_id"),
        root_id=_text(job, "root_id"),
        workflow_id=_text(job, "workflow_id") if member is None else member.id,
        workflow_step=UNSET if member is None else member.step,
    )


def job_traces(job: Job) -> JobTraces:
    """The job's attempts."""
    return JobTraces(job_id=job.id, traces=[_trace(one) for one in attempts_of(job)], trace_id=given(trace_id(job.meta)))


def attempt_trace(job: Job, number: str) -> OneAttemptTrace:
    """One attempt, the latest of its number. Raises OjsError invalid_request for what is no number, not_found."""
    if _ATTEMPT.fullmatch(number) is None:
        raise invalid("attempt", f"attempt must be a whole number from 1 to 999,999,999, not {shown(number)}")
    found = [one for one in attempts_of(job) if one.number == int(number)]
    if not found:
        raise not_found("attempt", number)
    return OneAttemptTrace(job_id=job.id, trace=_trace(found[-1]), trace_id=given(trace_id(job.meta)))


def failure_answer(body: bytes) -> FailureAnswer:
    """A stored event `job.failed` as an item of the list; its stack trace stays with the job."""
    event = _decode_event(body)
    return FailureAnswer(failed_at=event.time, **msgspec.structs.asdict(event.data))


def _after(cursor: str, job: Job, events: list[Happening]) -> int:
    match = _CURSOR.fullmatch(cursor)
    last = job.transitions[-1].n if job.transitions else 0
    if match is None or int(match[1]) > last:
        raise invalid("cursor", f"cursor must be the next_cursor of a page of this job's history, not {shown(cursor)}")
    passed = (int(match[1]), int(match[2]))
    return sum((one.entry.n, one.place) <= passed for one in events)


def _event(job: Job, one: Happening) -> HistoryEvent:
    return HistoryEvent(
        id=one.id,
        job_id=job.id,
        event_type=one.type,
        timestamp=format_ms(one.entry.at),
        actor=UNSET if one.actor is None else _actor(one.actor),
        data=one.data,
    )


def _actor(actor: Actor) -> ActorAnswer:
    return ActorAnswer(type=actor.kind, id=given(actor.id))


def _text(job: Job, name: str) -> str | UnsetType:
    sent: Raw | None = job.extra.get(name)
    value: Any = None if sent is None else msgspec.json.decode(sent)
    return value if isinstance(value, str) else UNSET


def _trace(one: Attempt) -> AttemptTrace:
    error = one.error
    return AttemptTrace(
        attempt=one.number,
        started_at=format_ms(one.started_at),
        worker_id=given(one.worker),
        ended_at=timestamp(one.ended_at),
        duration_ms=UNSET if one.ended_at is None else max(0, one.ended_at - one.started_at),
        outcome=given(one.outcome),
        state=given(one.after),
        error=UNSET if error is None else AttemptError(error.code, error.type, error.message),
        retry_generation=one.generation or UNSET,
    )
