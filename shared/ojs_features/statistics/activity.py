"""What happened in one queue within a span of time, and how it is counted from the logs of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from ojs_engine.base.numbers import Whole
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.past import Logged
from ojs_features.statistics.histogram import Buckets, add, bucket_of

COUNTED: Final = ("pushed", "started", "completed", "failed", "retried", "discarded", "cancelled", "expired")
"""The members of `Activity` that count transitions."""

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
            _count(activity, Logged(job, entry, place))


def _count(activity: Activity, one: Logged) -> None:
    entry = one.entry
    event, after = entry.event, entry.after
    if event == "pushed":
        activity.pushed += 1
    elif event == "claimed":
        activity.started += 1
        since = one.available_at
        if since is not None:
            waited = max(0, entry.at - since)
            activity.wait_ms += waited
            _add_one(activity.waits, waited)
    elif after is not None and after is not entry.before:
        _count_end(activity, one)


def _count_end(activity: Activity, one: Logged) -> None:
    after = one.entry.after
    if one.failed:
        activity.failed += 1
        activity.retried += after is not State.DISCARDED
    ran = one.duration_ms if one.entry.before is State.ACTIVE else None
    if ran is not None:
        _add_one(activity.runs, ran)
    if after is State.COMPLETED:
        activity.completed += 1
        activity.completed_ms += ran or 0
    elif after is State.CANCELLED:
        activity.cancelled += 1
    elif after is State.DISCARDED:
        activity.discarded += 1
        activity.expired += one.entry.event in _EXPIRIES


def _add_one(buckets: Buckets, took_ms: int) -> None:
    bucket = bucket_of(took_ms)
    buckets[bucket] = buckets.get(bucket, 0) + 1
