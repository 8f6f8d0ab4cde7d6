"""Jobs in every state, made by the transitions themselves, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.domain.transitions import Failure, JobHolder, Moment, ack, cancel, claim, nack, push

T0: Final = 1_800_000_000_000
SECOND: Final = 1_000
ANYONE: Final = JobHolder()

_ops = count(1)


def at(after_ms: int = 0, *, chance: float = 0.5) -> Moment:
    """A moment `after_ms` milliseconds after T0, with an op of its own; the default chance means no jitter."""
    return Moment(T0 + after_ms, f"op{next(_ops)}", chance)


def draft(**members: Any) -> Job:
    return Job(**({"id": "job-1", "type": "test.job", "args": Raw(b"[1]"), "state": State.AVAILABLE} | members))


def available(**members: Any) -> Job:
    return push(draft(**members), at()).job


def scheduled(**members: Any) -> Job:
    return push(draft(**({"scheduled_at": T0 + 10 * SECOND} | members)), at()).job


def pending(**members: Any) -> Job:
    return push(draft(**({"state": State.PENDING} | members)), at()).job


def active(worker: str | None = "w1", lease_ms: int | None = None, **members: Any) -> Job:
    return claim(available(**members), worker, lease_ms, at()).job


def retryable(**members: Any) -> Job:
    return nack(active(**members), Failure(message="no"), ANYONE, at()).job


def completed(**members: Any) -> Job:
    return ack(active(**members), Raw(b"1"), ANYONE, at()).job


def cancelled(**members: Any) -> Job:
    return cancel(available(**members), at()).job


def discarded(**members: Any) -> Job:
    return nack(active(**members), Failure(message="no", action="DISCARD"), ANYONE, at()).job


def dead_letter(**members: Any) -> Job:
    return discarded_by("DEAD_LETTER", **members)


def discarded_by(code: str, **members: Any) -> Job:
    return nack(active(**members), Failure(message="no", code=code), ANYONE, at()).job


SAMPLES: Final[dict[State, Callable[[], Job]]] = {
    State.SCHEDULED: scheduled,
    State.AVAILABLE: available,
    State.PENDING: pending,
    State.ACTIVE: active,
    State.RETRYABLE: retryable,
    State.COMPLETED: completed,
    State.CANCELLED: cancelled,
    State.DISCARDED: discarded,
}


def once(**members: Any) -> Retry:
    """A policy with a single attempt."""
    return Retry(**({"max_attempts": 1} | members))


def json(raw: Raw) -> Any:
    return msgspec.json.decode(raw)
