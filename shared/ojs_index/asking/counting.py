"""The counting of what happens to jobs, which a feature may do in the index while projectors follow them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from msgspec import Struct

from ojs_engine.domain.job import Job
from ojs_engine.jetstream.feed import Record
from ojs_index.asking.numbers import Point

WINDOWS: Final = {"5m": 300_000, "1h": 3_600_000, "1d": 86_400_000}
"""The windows of answers (ms), with the present minute as their last."""


class Recent(TypedDict, total=False):
    """Members of `Numbers` that say what happened lately."""

    completed_last_hour: int
    failed_last_hour: int
    avg_duration_ms: float | None
    avg_wait_ms: float | None
    throughput_per_second: float
    failed_per_second: float
    pushed_per_second: float
    windows: dict[str, Point]


class Counter:
    """A counter in tables of its own, inside the transactions of the index. Times are Unix ms. This one counts nothing."""

    def begin(self, now: int, last: Record | None, instance: str) -> None:
        """Begin to follow.

        `instance` names this replica, `last` is the latest record of the counts, None if there may be none.
        """

    def count(self, job: Job, known: tuple[int, int] | None, record: Record) -> None:
        """Count what is new in a job's log; `known` is its `created_at` and last entry as they were counted before."""

    def flush(self) -> None:
        """Write what was counted since the last time."""

    def drop(self) -> None:
        """Read what is stored again: a transaction was taken back."""

    def take(self, record: Record, held: Any) -> None:
        """Take up a record of the counts. Raises ValueError for one that is wrong."""

    def caught_up(self, sequence: int) -> None:
        """Note that everything that is stored up to `sequence` has been seen."""

    def forget(self, now: int) -> None:
        """Drop what is too old."""

    def wipe(self, sequence: int) -> None:
        """Drop everything: it was reset; `sequence` is that of the epoch."""

    def recent(self, queue: str | None, now: int, windows: Sequence[str]) -> Recent:  # noqa: ARG002  # there is nothing to look for
        """Return what happened lately in a queue, or in all, with these of `WINDOWS`."""
        return Recent()

    def ended(self, now: int) -> Mapping[str, tuple[int, int]]:  # noqa: ARG002  # there is nothing to look for
        """Return the completed and failed attempts of the last five minutes, by queue."""
        return {}

    def backlog(self, queue: str, now_there: int, now: int) -> tuple[int, ...]:  # noqa: ARG002  # there is nothing to look for
        """Return how many jobs of a queue had not ended in the last hour, `now_there` at last (`Queue.backlog`)."""
        return ()


class Counting(Struct, frozen=True, kw_only=True):
    """A feature's counting: its tables, and what counts in them."""

    tables: tuple[str, ...]
    schema: str
    make: Callable[[sqlite3.Connection, int, int], Counter]
    """Takes how much longer than its record it is to be known what was counted of a deleted job, and by how much the clock of
    a record may be ahead (ms).
    """
