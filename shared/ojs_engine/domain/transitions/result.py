"""What a transition is made from and what it decides."""

from __future__ import annotations

from msgspec import Struct

from ojs_engine.domain.job import Job, Timer
from ojs_engine.domain.transitions.deadlines import WorkerTimes
from ojs_engine.domain.transitions.effects import Effect


class Moment(Struct, frozen=True):
    """When and as what a transition happens: everything a pure function may not find out by itself.

    `now` is server time in Unix milliseconds; `op` a fresh word that no other transition ever carries, fit for a subject
    token; `chance` a random number in [0, 1) for jitter; `late_ms` how long ago `now` is, if that is more than a moment;
    `workers` says how their silence is judged.
    """

    now: int
    op: str
    chance: float = 0.5
    late_ms: int = 0
    workers: WorkerTimes = WorkerTimes()


class Transition(Struct, frozen=True):
    """One commit: the document to store, and what it brings about."""

    job: Job
    effects: tuple[Effect, ...] = ()
    """In the order in which they are written."""
    ttl_s: int | None = None
    """Seconds until the record leaves by itself; only terminal records and tombstones have one."""


class Rearm(Struct, frozen=True):
    """A timer that fired early for what the record says now: set it again on its own subject; no record is written."""

    timer: Timer


class Change(Struct, frozen=True):
    """A job before and after a transition."""

    before: Job
    after: Job
