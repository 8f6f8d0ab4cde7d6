"""A job's history, lineage and attempts, and failed attempts of all jobs (ojs-execution-history §4, §5, §7; docs/adr/007)."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from ojs_api.history import (
    Actor,
    AttemptError,
    AttemptTrace,
    Failure,
    HistoryEvent,
    JobHistoryPage,
    JobLineage,
    JobTraces,
    OneAttemptTrace,
)
from ojs_engine.base.errors import invalid, not_found
from ojs_engine.base.fields import shown
from ojs_engine.domain.events.envelope import trace_id
from ojs_engine.domain.job import Job
from ojs_engine.wire.members import moment, written
from ojs_engine.wire.pages import Page
from ojs_features.history.attempts import Attempt, attempts_of
from ojs_features.history.happenings import Happening, history_of

_CURSOR: Final = re.compile(r"([1-9][0-9]{0,9})\.([0-9])", re.ASCII)
_ATTEMPT: Final = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


class _Failed(Struct):
    job_id: str
    job_type: str
    queue: str
    attempt: int
    error: AttemptError
    state: str | None = None
    worker_id: str | None = None
    duration_ms: int | None = None
    trace_id: str | None = None


class _Event(Struct):
    time: str
    data: _Failed


_decode_event: Final = msgspec.json.Decoder(_Event).decode


def history_page(job: Job, page: Page) -> JobHistoryPage:
    """Return a page of the job's history. The cursor names the last event of the page before, which may be gone by now.

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
        next_cursor=f"{found[-1].entry.n}.{found[-1].place}" if more else None,
    )


def job_lineage(job: Job) -> JobLineage:
    """Return what is stored of where the job comes from. Members of the envelope count as far as they are text."""
    member = job.workflow
    return JobLineage(
        job_id=job.id,
        parent_id=_text(job, "parent_id"),
        root_id=_text(job, "root_id"),
        workflow_id=_text(job, "workflow_id") if member is None else member.id,
        workflow_step=None if member is None else member.step,
    )


def job_traces(job: Job) -> JobTraces:
    """Return the job's attempts."""
    return JobTraces(job_id=job.id, traces=[_trace(one) for one in attempts_of(job)], trace_id=trace_id(job.meta))


def attempt_trace(job: Job, number: str) -> OneAttemptTrace:
    """Return one attempt, the latest of its number. Raises OjsError invalid_request for what is no number, not_found."""
    if _ATTEMPT.fullmatch(number) is None:
        raise invalid("attempt", f"attempt must be a whole number from 1 to 999,999,999, not {shown(number)}")
    found = [one for one in attempts_of(job) if one.number == int(number)]
    if not found:
        raise not_found("attempt", number)
    return OneAttemptTrace(job_id=job.id, trace=_trace(found[-1]), trace_id=trace_id(job.meta))


def failure_answer(body: bytes) -> Failure:
    """Return a stored event `job.failed` as an item of the list; its stack trace stays with the job."""
    event = _decode_event(body)
    return Failure(failed_at=written(event.time), **msgspec.structs.asdict(event.data))


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
        timestamp=moment(one.entry.at),
        actor=None if one.actor is None else Actor(type=one.actor.kind, id=one.actor.id),
        data=one.data,
    )


def _text(job: Job, name: str) -> str | None:
    sent: Raw | None = job.extra.get(name)
    value: Any = None if sent is None else msgspec.json.decode(sent)
    return value if isinstance(value, str) else None


def _trace(one: Attempt) -> AttemptTrace:
    error = one.error
    return AttemptTrace(
        attempt=one.number,
        started_at=moment(one.started_at),
        worker_id=one.worker,
        ended_at=moment(one.ended_at),
        duration_ms=None if one.ended_at is None else max(0, one.ended_at - one.started_at),
        outcome=one.outcome,
        state=one.after,
        error=None if error is None else AttemptError(code=error.code, type=error.type, message=error.message),
        retry_generation=one.generation or None,
    )
