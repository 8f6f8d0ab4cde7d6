"""A job's past: the one reading of its log, of which events and statistics are views, and those of features.

Revisions are coalesced: whoever follows the bucket may see only the last of several. So an entry is read from a document that
may be many transitions further on. It keeps the newest errors, and the log says the rest; what neither holds any more is said
to be unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from ojs_engine.domain.job import NOTHING, Entry, Job, JobError, State
from ojs_engine.domain.transitions.deadlines import execution_ms

FAILURES: Final = frozenset({"failed", "timed_out", "stalled", "lease_expired", "worker_died", "total_timed_out"})
"""Words of the log that end an attempt without success, if one was running."""


class Logged(Struct, frozen=True):
    """One entry in its place: the log before and after it. Times are Unix ms."""

    job: Job
    entry: Entry
    place: int
    """Its index in the log."""

    @classmethod
    def of(cls, job: Job, entry: Entry) -> Logged:
        """Return an entry of a job's log in its place."""
        return cls(job, entry, entry.n - job.transitions[0].n if job.transitions else 0)

    @property
    def later(self) -> Sequence[Entry]:
        """The entries behind it, the oldest first."""
        return self.job.transitions[self.place + 1 :]

    @property
    def earlier(self) -> Iterator[Entry]:
        """The entries ahead of it, the newest first."""
        return reversed(self.job.transitions[: self.place])

    @property
    def generation(self) -> int:
        """Manual retries up to and including the entry, in the life that it belongs to."""
        later = self.later
        if any(entry.event == "pushed" for entry in later):  # another job has been given the id since
            return sum(entry.event == "retried" for entry in life_of(self.job.transitions[: self.place + 1]))
        return self.job.generation - sum(entry.event == "retried" for entry in later)

    @property
    def queue(self) -> str:
        """Where the entry was written: the next that says so speaks for those before it."""
        named = (entry.queue for entry in (self.entry, *self.later) if entry.queue is not None)
        return next(named, self.job.queue)

    @property
    def dead_letter(self) -> bool:
        """Whether the job was a dead letter once it was discarded by the entry."""
        after = next((entry for entry in self.later if entry.event in {"retried", "deleted", "pruned"}), None)
        if after is None:
            return self.job.dead_letter
        return after.event != "retried" or after.reason == "dead_letter"

    @property
    def failed(self) -> bool:
        """Whether it ended a running attempt without success."""
        return self.entry.before is State.ACTIVE and self.entry.event in FAILURES

    @property
    def error(self) -> JobError:
        """The error that the entry recorded."""
        entry, generation = self.entry, self.generation
        for error in reversed(self.job.errors):
            if (error.at, error.attempt, error.generation) == (entry.at, entry.attempt, generation):
                return error
        kind = entry.reason or "unknown"
        return JobError(
            code=kind,
            type=kind,
            message="the error is no longer kept",
            attempt=entry.attempt,
            at=entry.at,
            retryable=entry.after is not State.DISCARDED,
            generation=generation,
        )

    @property
    def available_at(self) -> int | None:
        """When the job became available in its queue that the entry claimed; None if the log no longer says."""
        for entry in self.earlier:
            if entry.after is State.AVAILABLE and (entry.before is not State.AVAILABLE or entry.event == "moved"):
                return entry.at
        return None

    @property
    def started_at(self) -> int | None:
        """When the attempt that the entry ended had begun."""
        for entry in self.earlier:
            if entry.event == "claimed":
                return entry.at if entry.attempt == self.entry.attempt else None
        job = self.job
        same = self.entry is job.transitions[-1] and job.attempt == self.entry.attempt
        return job.started_at if same else None

    @property
    def duration_ms(self) -> int | None:
        """How long the attempt ran that the entry ended."""
        started_at = self.started_at
        return None if started_at is None else max(0, self.entry.at - started_at)

    @property
    def next_retry_at(self) -> int:
        """When the next attempt was to come; at once after a lost lease."""
        job, entry, later = self.job, self.entry, self.later
        if entry.after is not State.RETRYABLE:
            return entry.at
        if not later and job.next_attempt_at is not None:
            return job.next_attempt_at
        return later[0].at if later and later[0].event == "promoted" else entry.at + (job.retry_delay_ms or 0)

    def overrun(self, kind: str) -> dict[str, Any]:
        """Return `timeout_kind`, `limit_seconds` and `elapsed_seconds` of a passed limit (ojs-timeouts §8)."""
        details = _object(self.error.details)
        job, entry = self.job, self.entry
        match kind:
            case "execution":
                limit_ms, since = execution_ms(job), self.started_at
            case "stalled":
                limit_ms, since = job.heartbeat_timeout_ms or 0, self.started_at
            case "enqueue_ttl":
                limit_ms, since = job.enqueue_ttl_ms or 0, job.enqueued_at
            case _:
                limit_ms, since = job.total_timeout_ms or 0, job.re_enqueued_at or job.created_at
        elapsed_ms = max(limit_ms, entry.at - since) if since is not None else limit_ms
        return {
            "timeout_kind": kind,
            "limit_seconds": details.get("limit_seconds", limit_ms / 1_000),
            "elapsed_seconds": details.get("elapsed_seconds", elapsed_ms / 1_000),
        }


def life_of(log: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries since the job was created, as far as the log goes back: an id may have had jobs before."""
    return log[birth_of(log) - log[0].n :] if log else log


def birth_of(log: Sequence[Entry]) -> int:
    """Return the number of the entry with which the present life began, or of the first that is kept; 0 if there is none."""
    for entry in reversed(log):
        if entry.event == "pushed":
            return entry.n
    return log[0].n if log else 0


def stack_trace(backtrace: Raw) -> str | None:
    """Return a backtrace as one text: some clients send lines, which may end in a line break each."""
    if backtrace == NOTHING:
        return None
    value: Any = msgspec.json.decode(backtrace)
    if isinstance(value, list):
        return "\n".join(str(line).removesuffix("\n") for line in value)
    return value if isinstance(value, str) else None


def _object(details: Raw) -> dict[str, Any]:
    value: Any = msgspec.json.decode(details) if details else None
    return value if isinstance(value, dict) else {}
