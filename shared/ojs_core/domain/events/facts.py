"""What was the case when a log entry was written, from a document that may be many transitions further on.

Revisions are coalesced: whoever follows the bucket may see only the last of several. The document keeps the newest errors,
and the log says the rest; what neither holds any more is said to be unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from ojs_core.domain.job import NOTHING, Entry, Job, JobError, State
from ojs_core.domain.transitions.deadlines import execution_ms

_UNKNOWN: Final = "unknown"


class Facts(NamedTuple):
    """One entry in its place: the log before and after it."""

    job: Job
    entry: Entry
    earlier: Sequence[Entry]
    later: Sequence[Entry]

    @classmethod
    def of(cls, job: Job, entry: Entry) -> Facts:
        log = job.transitions
        place = entry.n - log[0].n if log else 0
        return cls(job, entry, log[:place], log[place + 1 :])

    @property
    def generation(self) -> int:
        """Manual retries up to and including the entry, in the life that it belongs to."""
        if any(entry.event == "pushed" for entry in self.later):  # another job has been given the id since
            return sum(entry.event == "retried" for entry in (*self.earlier[self._birth :], self.entry))
        return self.job.generation - sum(entry.event == "retried" for entry in self.later)

    @property
    def _birth(self) -> int:
        """Where in `earlier` the entry's life begins."""
        return max((place for place, entry in enumerate(self.earlier) if entry.event == "pushed"), default=0)

    @property
    def dead_letter(self) -> bool:
        """Whether the job was a dead letter once it was discarded by the entry."""
        after = next((entry for entry in self.later if entry.event in {"retried", "deleted", "pruned"}), None)
        if after is None:
            return self.job.dead_letter
        return after.event != "retried" or after.reason == "dead_letter"

    @property
    def error(self) -> JobError:
        """The error that the entry recorded."""
        entry, generation = self.entry, self.generation
        for error in reversed(self.job.errors):
            if (error.at, error.attempt, error.generation) == (entry.at, entry.attempt, generation):
                return error
        kind = entry.reason or _UNKNOWN
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
    def started_at(self) -> int | None:
        """When the attempt that the entry ended had begun (Unix ms)."""
        for entry in reversed(self.earlier):
            if entry.event == "claimed":
                return entry.at if entry.attempt == self.entry.attempt else None
        job = self.job
        same = not self.later and job.attempt == self.entry.attempt
        return job.started_at if same else None

    @property
    def duration_ms(self) -> int | None:
        """How long the attempt ran that the entry ended."""
        started_at = self.started_at
        return None if started_at is None else max(0, self.entry.at - started_at)

    @property
    def next_retry_at(self) -> int:
        """When the next attempt was to come; at once after a lost lease."""
        job, entry = self.job, self.entry
        if entry.after is not State.RETRYABLE:
            return entry.at
        if not self.later and job.next_attempt_at is not None:
            return job.next_attempt_at
        promoted = self.later[0] if self.later and self.later[0].event == "promoted" else None
        return promoted.at if promoted is not None else entry.at + (job.retry_delay_ms or 0)

    def overrun(self, kind: str) -> dict[str, Any]:
        """`timeout_kind`, `limit_seconds` and `elapsed_seconds` of a passed limit (ojs-timeouts §8)."""
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
