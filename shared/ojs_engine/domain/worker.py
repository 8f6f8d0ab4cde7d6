"""A worker, as it describes itself when it registers and beats (ojs-worker-protocol)."""

from __future__ import annotations

from msgspec import Raw, Struct

from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.handlers import Handler
from ojs_engine.domain.job import NOTHING, Job


class Mark(Struct, frozen=True, array_like=True):
    """A moment of the bucket: the sequence of a record that was written then, and server time (Unix ms).

    The sequence is exact whatever clocks say. The time tells apart what another bucket counts anew.
    """

    sequence: Whole
    at: At

    def follows(self, job: Job, revision: int) -> bool:
        """Return whether an active job, whose record has this revision, was claimed before."""
        return revision < self.sequence and job.started_at is not None and job.started_at <= self.at


class CompleteList(Struct, frozen=True):
    """The ids of all jobs that a worker's process holds, of those that it was given from one mark to another.

    What the worker held before `since` was held by an earlier process of the same id (docs/adr/016).
    """

    since: Mark
    until: Mark
    jobs: frozenset[str]


class Worker(Struct, frozen=True, kw_only=True):
    """What a worker says of itself."""

    id: str
    state: str = "running"
    hostname: str | None = None
    pid: Whole | None = None
    queues: tuple[str, ...] = ()
    concurrency: Whole | None = None
    labels: Raw = NOTHING
    started_at: str | None = None
    active_jobs: Whole = 0
    handlers: tuple[Handler, ...] | None = None
    """What it can run, as far as it says so; None for everything."""
    complete: CompleteList | None = None
    """All that it holds, if it says that it names all."""
