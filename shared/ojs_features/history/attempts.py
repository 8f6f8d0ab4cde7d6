"""The attempts of a job, by its log."""

from __future__ import annotations

from typing import NamedTuple

from ojs_engine.domain.job import Job, JobError, State
from ojs_engine.domain.past import Logged, life_of


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


def past_of(job: Job) -> list[Logged]:
    """Return the entries of the job's present life in their places, the oldest first."""
    return [Logged.of(job, entry) for entry in life_of(job.transitions)]


def attempts_of(job: Job) -> list[Attempt]:
    """Return the attempts whose beginning the log still has, the oldest first. After a manual retry they count from 1 again."""
    attempts: list[Attempt] = []
    for one in past_of(job):
        entry = one.entry
        if entry.event == "claimed":
            attempts.append(Attempt(entry.attempt, one.generation, entry.at, entry.worker))
        elif attempts and entry.before is State.ACTIVE and entry.after is not State.ACTIVE:
            error = one.error if one.failed else None
            attempts[-1] = attempts[-1]._replace(ended_at=entry.at, outcome=entry.event, after=entry.after, error=error)
    return attempts
