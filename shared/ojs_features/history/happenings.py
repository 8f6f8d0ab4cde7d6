"""What happened to a job in the words of ojs-execution-history §3, made of its log (docs/adr/007)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ojs_api.history import ActorKind
from ojs_engine.domain.events.envelope import event_id
from ojs_engine.domain.events.vocabulary import NOBODY
from ojs_engine.domain.job import CALLED_OFF, Entry, Job, State
from ojs_engine.domain.past import Logged
from ojs_features.history.attempts import past_of

_CLIENTS: Final = frozenset({"activated", "cancelled", "deleted", "removed", "retried", "reprioritised"})
_WORKERS: Final = frozenset({"claimed", "acked", "failed", "requeued"})


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


def history_of(job: Job) -> History:
    """Return the events of the job's present life, without those of a deleted job that had the id before."""
    life = past_of(job)
    events = [
        Happening(one.entry, place, event_id(job.id, one.entry, f"history.{kind}"), kind, _actor(job, one.entry), data)
        for one in life
        for place, (kind, data) in enumerate(_told(one))
    ]
    return History(events, bool(life) and life[0].entry.event == "pushed")


def _told(one: Logged) -> Iterator[tuple[str, dict[str, Any]]]:
    job, entry = one.job, one.entry
    if entry.event == "pushed":
        yield "job.created", {"queue": one.queue, "type": job.type, "args_size_bytes": len(job.args)}
    elif entry.event == "acked":
        yield "job.attempt_completed", {"attempt": entry.attempt, "duration_ms": one.duration_ms or 0}
    elif one.failed:
        error = one.error
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
        yield "job.discarded", {"total_attempts": entry.attempt, "last_error": one.error.message}
    if entry.event == "acked" and job.workflow is not None:
        step = {"workflow_id": job.workflow.id, "step_index": job.workflow.index, "job_id": job.id}
        yield "workflow.step_completed", step


def _changed(entry: Entry) -> dict[str, Any]:
    """`cause` is the word of the log: a lost lease and a delay that is over both lead to `available`."""
    changed: dict[str, Any] = {"from": entry.before, "to": entry.after, "cause": entry.event}
    return changed if entry.reason is None else changed | {"reason": entry.reason}


def _actor(job: Job, entry: Entry) -> Actor | None:
    """Return None where the log doesn't say: features push as clients do."""
    if entry.event in _WORKERS and not (entry.event == "requeued" and entry.reason is not None):
        return Actor("worker", entry.worker)
    if entry.event == "pushed":
        return Actor("system") if job.workflow is not None else None
    if entry.event in _CLIENTS and entry.reason != CALLED_OFF:
        return Actor("client")
    return Actor("system")
