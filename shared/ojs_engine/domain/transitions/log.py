"""The job's own log of its transitions: its history for people and the source of its events."""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from ojs_engine.domain.job import Entry, Job
from ojs_engine.domain.transitions.result import Moment

KEPT: Final = 64

TransitionName = Literal[
    "pushed",
    "activated",
    "promoted",
    "claimed",
    "acked",
    "failed",
    "requeued",
    "timed_out",
    "stalled",
    "lease_expired",
    "worker_died",
    "expired",
    "ttl_expired",
    "total_timed_out",
    "cancelled",
    "retried",
    "reissued",
    "reprioritised",
    "dropped",
    "moved",
    "removed",
    "postponed",
    "deleted",
    "pruned",
]
"""What happened, as `Entry.event` says it. `failed` is the worker's own report; what a deadline did has its own word, so
that a worker whose error happens to be called `timeout` is not mistaken for the server's execution timeout."""


def leading_to(queue: str, job: Job) -> tuple[Entry, ...]:
    """A job's log, to go on in a queue: if that is another, the last entry says where it has happened."""
    log = job.transitions
    if not log or job.queue == queue:
        return log
    return (*log[:-1], replace(log[-1], queue=job.queue))


def logged(old: Job | None, new: Job, moment: Moment, event: TransitionName, *, worker: str | None, reason: str | None) -> Job:
    """`new` with the transition from `old` appended to its log; the oldest entries beyond 64 go, numbers go on."""
    last = new.transitions[-1].n if new.transitions else 0
    entry = Entry(
        n=last + 1,
        op=moment.op,
        event=event,
        at=moment.now,
        before=old.state if old is not None else None,
        after=None if new.deleted else new.state,
        attempt=new.attempt,
        worker=worker,
        reason=reason,
        late_ms=moment.late_ms,
    )
    return replace(new, transitions=(*new.transitions, entry)[-KEPT:])
