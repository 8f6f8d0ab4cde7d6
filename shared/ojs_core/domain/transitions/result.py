"""What a transition is made from and what it decides."""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

from ojs_core.domain.job import Blob, Job, Timer
from ojs_core.domain.transitions.deadlines import WorkerTimes


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


class Apart(Struct, frozen=True):
    """A result to store ahead of the record that names it, and the seconds after which it leaves by itself."""

    body: Raw
    ttl_s: int


class Transition(Struct, frozen=True):
    """One commit: the document to store and the hints that go ahead of it."""

    job: Job
    arm: Timer | None = None
    """The timer to publish ahead of the record: `job.timer`, unless that is the record itself."""
    cancel: str | None = None
    """The op of the timer that the record's message purges."""
    token: bool = False
    """Whether the job gets a new token, which carries `job.token`."""
    stale_token_of: Job | None = None
    """The job as it was, if this leaves its token without anything to stand for. A claim has its token in hand."""
    step: Literal["started", "ended"] | None = None
    """What to tell the coordinator of the workflow that the job belongs to."""
    releases: tuple[str, ...] = ()
    """Limits to hint to that a claim which holds their permits is about to end."""
    claim: str | None = None
    """The op of that claim."""
    ttl_s: int | None = None
    """Seconds until the record leaves by itself; only terminal records and tombstones have one."""
    apart: Apart | None = None
    """The body of `job.result_blob`."""
    drops: Blob | None = None
    """What the record named before, and nothing names any more."""
    ends_checkpoint: bool = False
    """Whether the job may have a checkpoint that nobody goes on from any more."""


class Rearm(Struct, frozen=True):
    """A timer that fired early for what the record says now: set it again on its own subject; no record is written."""

    timer: Timer


class Change(Struct, frozen=True):
    """A job before and after a transition."""

    before: Job
    after: Job
