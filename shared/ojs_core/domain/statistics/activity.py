"""What happened in one queue within a span of time, and how it is counted from the logs of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from ojs_core.base.numbers import Whole
from ojs_core.domain.job import Entry, Job, State
from ojs_core.domain.statistics.histogram import Buckets, add, bucket_of

COUNTED: Final = ("pushed", "started", "completed", "failed", "retried", "discarded", "cancelled", "expired")
"""The members of `Activity` that count transitions."""

_FAILURES: Final = frozenset({"failed", "timed_out", "stalled", "lease_expired", "worker_died", "total_timed_out"})
_EXPIRIES: Final = frozenset({"expired", "ttl_expired"})


class Activity(Struct, array_like=True):
    """Transitions, and how long jobs waited and ran. Stored as it stands: new members go to the end."""

    pushed: Whole = 0
    started: Whole = 0
    completed: Whole = 0
    failed: Whole = 0
    """Attempts that failed, by their worker's word or by a deadline's."""
    retried: Whole = 0
    """Those of them that are followed by another attempt."""
    discarded: Whole = 0
    """Jobs that ended badly, dead letters included."""
    cancelled: Whole = 0
    expired: Whole = 0
    """Discarded jobs that had outlived a limit before they ran."""
    wait_ms: Whole = 0
    """From available to started, all starts together."""
    completed_ms: Whole = 0
    """From started to completed, all completed attempts together."""
    waits: Buckets = field(default_factory=dict)
    """From available to started."""
    runs: Buckets = field(default_factory=dict)
    """From started to the end of the attempt, however it ended."""

    def add(self, other: Activity) -> None:
        """Add what happened elsewhere, or at another time."""
        self.pushed += other.pushed
        self.started += other.started
        self.completed += other.completed
        self.failed += other.failed
        self.retried += other.retried
        self.discarded += other.discarded
        self.cancelled += other.cancelled
        self.expired += other.expired
        self.wait_ms += other.wait_ms
        self.completed_ms += other.completed_ms
        add(self.waits, other.waits)
        add(self.runs, other.runs)


def count(job: Job, after: int, pick: Callable[[str, int], Activity | None]) -> None:
    """Count the entries of a job's log above the number `after`.

    `pick` is given the queue and the moment (Unix ms) of an entry and says what to count it in, None for nothing. The moment
    is when the transition was decided: a deadline that was acted on late counts where that happened.
    """
    log = job.transitions
    queue = job.queue
    for place in range(len(log) - 1, -1, -1):
        entry = log[place]
        if entry.n <= after:
            return
        queue = entry.queue or queue
        activity = pick(queue, entry.at + entry.late_ms)
        if activity is not None:
            _count(activity, log, place)


def _count(activity: Activity, log: Sequence[Entry], place: int) -> None:
    entry = log[place]
    event, after = entry.event, entry.after
    if event == "pushed":
        activity.pushed += 1
        return
    if event == "claimed":
        activity.started += 1
        since = _available_at(log, place)
        if since is not None:
            waited = max(0, entry.at - since)
            activity.wait_ms += waited
            bucket = bucket_of(waited)
            activity.waits[bucket] = activity.waits.get(bucket, 0) + 1
        return
    if after is None or after is entry.before:
        return
    if entry.before is State.ACTIVE:
        _count_run(activity, log, place)
    if after is State.COMPLETED:
        activity.completed += 1
    elif after is State.CANCELLED:
        activity.cancelled += 1
    elif after is State.DISCARDED:
        activity.discarded += 1
        activity.expired += event in _EXPIRIES


def _count_run(activity: Activity, log: Sequence[Entry], place: int) -> None:
    entry = log[place]
    if entry.event in _FAILURES:
        activity.failed += 1
        activity.retried += entry.after is not State.DISCARDED
    for back in range(place - 1, -1, -1):
        if log[back].event == "claimed":
            ran = max(0, entry.at - log[back].at)
            bucket = bucket_of(ran)
            activity.runs[bucket] = activity.runs.get(bucket, 0) + 1
            if entry.after is State.COMPLETED:
                activity.completed_ms += ran
            return


def _available_at(log: Sequence[Entry], place: int) -> int | None:
    """When the job became available that was claimed by the entry at `place`; None if the log no longer says."""
    for back in range(place - 1, -1, -1):
        entry = log[back]
        if entry.after is State.AVAILABLE and (entry.before is not State.AVAILABLE or entry.event == "moved"):
            return entry.at
    return None
