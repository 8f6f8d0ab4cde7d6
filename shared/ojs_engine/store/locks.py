"""Locks: what a feature writes ahead of a job, so that it may refuse the job or answer with another one.

The engine calls them only for jobs that ask for one, and never where no feature has brought them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.store.gates import Asks
from ojs_engine.store.records.atomic import AtomicCommit
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.writer import Write

Decide = Callable[[Job, Moment], Transition]
Locate = Callable[[OjsError, int], OjsError]
"""The refusal of one of several jobs, with its place among them."""


class Locked(NamedTuple):
    """The writes of a job that takes a lock: its commits, of which the last stores the job, and its lock."""

    commits: Sequence[AtomicCommit]
    lock: Write


class LockPlan(Protocol):
    """The locks of jobs that are written in one batch, as they are planned one after the other."""

    def push(self, draft: Job, before: Sequence[Job], expected: int) -> Job | Locked:
        """Return the writes of a new job, or the job that is there in its stead.

        `before` are the answers for the jobs ahead of it, `expected` is the revision of its record. Raises OjsError
        duplicate.
        """

    async def revive(self, found: Stored, decided: Transition, moment: Moment) -> Locked:
        """Return the writes of the new life of a finished job. Raises OjsError duplicate."""


class JobLocks(Protocol):
    """The locks of a feature in one process. Everything that waits raises OjsError backend_unavailable."""

    @property
    def asks(self) -> Asks: ...

    @property
    def budget_s(self) -> float:
        """For how long a write is tried that takes a lock."""

    async def store(self, draft: Job) -> Job:
        """Store a new job under its lock, or return the job that is there in its stead. Raises OjsError duplicate."""

    async def revive(self, found: Stored, decided: Job, decide: Decide) -> Job:
        """Store the new life of a finished job under its lock, trying once.

        `decided` is what `decide` made of it. It is called again, since a lock may be waited for. Raises OjsError
        duplicate; Conflict, of the lock or the record.
        """

    def turns(self, drafts: Sequence[Job]) -> AbstractAsyncContextManager[None]:
        """Keep others of this process from the locks of jobs that ask."""

    async def plan(self, drafts: Sequence[Job]) -> LockPlan:
        """Read the locks of new jobs that ask, which are stored in one batch."""

    async def instead(self, draft: Job) -> Job | None:
        """Return the job that a push would be answered with now in place of a new one. Raises OjsError duplicate."""

    async def check(self, drafts: Sequence[Job], located: Locate) -> None:
        """Check jobs that are to be stored one by one. Raises OjsError duplicate, located, for one that would be refused."""

    async def fenced(self, job_id: str) -> bool:
        """Return whether the place of a job's record has nothing but what took it from a writer that was too late."""

    async def close(self) -> None:
        """End the work under way."""
