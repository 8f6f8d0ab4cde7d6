"""Durations of unique jobs."""

from __future__ import annotations

from typing import ClassVar

from ojs_link.timings import Order, Timings


class LockTimings(Timings, frozen=True, kw_only=True):
    """How long a lock's owner is waited for, and how long a lock stays that is let go."""

    young_ms: int = 4_000
    """A lock this young may be ahead of its owner's record: longer than a commit is tried. An owner that needs more
    time, since the answer to its lock came late, is fenced and tries again. A batch may take longer: its locks are
    stored together with its records, so they are never ahead.
    """
    first_pause_s: float = 0.01
    """The first pause between two checks of such a lock; each is twice as long as the one before."""
    last_pause_s: float = 0.25
    """The longest of these pauses."""
    let_go_s: int = 1
    """How long a lock stays whose owner was never stored, or is deleted."""
    spare_s: int = 60
    """By so much a lock outlives its owner's record: while both are there the record decides."""
    close_s: float = 1.0
    """How long a process that stops goes on with letting locks go."""
    order: ClassVar[Order] = (("first_pause_s", "last_pause_s", "pauses would grow shorter"),)


class LeftLockTimings(Timings, frozen=True, kw_only=True):
    """When a lock is checked that its owner may have left behind."""

    check_ms: int = 60_000
    """After this long a lock is checked: a process that took it has written its job by then, and one that ended its
    owner has let it go, or they are dead.
    """
    at_once: int = 100
    """Checks in one round; the rest waits for the next."""
