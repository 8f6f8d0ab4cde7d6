"""What happened to a job in the words of ojs-execution-history §3, and its attempts: made of the job's log (docs/adr/007)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from ojs_core.domain.events.envelope import event_id
from ojs_core.domain.events.facts import Facts
from ojs_core.domain.events.vocabulary import NOBODY
from ojs_core.domain.job import Entry, Job, JobError, State
from ojs_core.domain.workflows.record import CALLED_OFF

ActorKind = Literal["worker", "client", "system"]

_CLIENTS: Final = frozenset({"activated", "cancelled", "deleted", "removed", "retried", "reprioritised"})
_WORKERS: Final = frozenset({"claimed", "acked", "failed", "requeued"})
_FAILURES: Final = frozenset({"failed", "timed_out", "stalled", "lease_expired", "worker_died", "total_timed_out"})
"""Words of the log that end an attempt without success, if one was running."""


class Actor(NamedTuple):
    """Who did it (ojs-execution-history §4.1); `id` is a worker's."""

    kind: ActorKind
    id: str | None = None


class Happening(NamedTuple):
    """One event of a job's history. `place` counts the events of one log entry from 0."""

    entry: Entry
    place: int
    id: str
    type: str
    actor: Actor | None
    data: dict[str, Any]


class History(NamedTuple):
    """A job's events, oldest first. `complete` while the job's log still has its beginning."""

    events: list[Happening]
    complete: bool


class Attempt(NamedTuple):
    """One attempt; what ended it is None while it runs. Times are Unix ms."""

    number: int
    generation: int
    started_at: int
    worker: str | None
    ended_at: int | None = None
    outcome: str | None = None
    after: State | None = None
    error: JobError | None = None


def history_of(job: Job) -> History:
    """The events of the job's present life: a job that had the id before and was deleted isn't told of."""
    life = life_of(job)
    events = [
        Happening(entry, place, event_id(job.id, entry, f"history.{kind}"), kind, _actor(job, entry), data)
        for entry in life
        for place, (kind, data) in enumerate(_told(Facts.of(job, entry)))
    ]
    return History(events, bool(life) and life[0].event == "pushed")


def attempts_of(job: Job) -> list[Attempt]:
    """The attempts whose beginning the log still has, oldest first. A job that was retried by hand counts from 1 again."""
    attempts: list[Attempt] = []
    for entry in life_of(job):
        facts = Facts.of(job, entry)
        if entry.event == "claimed":
            attempts.append(Attempt(entry.attempt, facts.generation, entry.at, entry.worker))
        elif attempts and entry.before is State.ACTIVE and entry.after is not State.ACTIVE:
            error = facts.error if entry.event in _FAILURES else None
            attempts[-1] = attempts[-1]._replace(ended_at=entry.at, outcome=entry.event, after=entry.after, error=error)
    return attempts


def life_of(job: Job) -> Sequence[Entry]:
    """The entries of the job's log since it was created, as far as it goes back."""
    log = job.transitions
    births = (place for place in range(len(log) - 1, -1, -1) if log[place].event == "pushed")
    return log[next(births, 0) :]


def _told(facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    job, entry = facts.job, facts.entry
    failed = entry.event in _FAILURES and entry.before is State.ACTIVE
    if entry.event == "pushed":
        yield "job.created", {"queue": _queue(facts), "type": job.type, "args_size_bytes": len(job.args)}
    elif entry.event == "acked":
        yield "job.attempt_completed", {"attempt": entry.attempt, "duration_ms": facts.duration_ms or 0}
    elif failed:
        error = facts.error
        yield (
            "job.attempt_failed",
            {
                "attempt": entry.attempt,
                "error": error.message,
                "code": error.code,
                "type": error.type,
                "will_retry": entry.after is not State.DISCARDED,
            },
        )
    if entry.before is not None and entry.after is not None and entry.before is not entry.after:
        yield "job.state_changed", _changed(entry)
    if entry.event == "claimed":
        yield "job.attempt_started", {"attempt": entry.attempt, "worker_id": entry.worker or NOBODY}
    elif entry.after is State.CANCELLED:
        yield "job.cancelled", {} if entry.reason is None else {"reason": entry.reason}
    elif entry.after is State.DISCARDED:
        yield "job.discarded", {"total_attempts": entry.attempt, "last_error": facts.error.message}
    if entry.event == "acked" and job.workflow is not None:
        step = {"workflow_id": job.workflow.id, "step_index": job.workflow.index, "job_id": job.id}
        yield "workflow.step_completed", step


def _changed(entry: Entry) -> dict[str, Any]:
    """`cause` is the word of the log: a lost lease and a delay that is over both lead to `available`."""
    changed: dict[str, Any] = {"from": entry.before, "to": entry.after, "cause": entry.event}
    return changed if entry.reason is None else changed | {"reason": entry.reason}


def _queue(facts: Facts) -> str:
    """Where the entry was written: the next that says so speaks for those before it."""
    named = (entry.queue for entry in (facts.entry, *facts.later) if entry.queue is not None)
    return next(named, facts.job.queue)


def _actor(job: Job, entry: Entry) -> Actor | None:
    """None where the log doesn't tell: cron entries push as clients do."""
    if entry.event in _WORKERS and not (entry.event == "requeued" and entry.reason is not None):
        return Actor("worker", entry.worker)
    if entry.event == "pushed":
        return Actor("system") if job.workflow is not None else None
    if entry.event in _CLIENTS and entry.reason != CALLED_OFF:
        return Actor("client")
    return Actor("system")
