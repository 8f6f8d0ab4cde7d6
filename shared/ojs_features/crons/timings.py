"""Durations of crons."""

from __future__ import annotations

from ojs_link.timings import Timings


class CronTimings(Timings, frozen=True, kw_only=True):
    """When ticks are taken over, and handled due messages are deleted."""

    tick_s: int = 2
    """How long a scheduler may take over a tick before another gets it; short, so that the next tick of an entry that
    runs every second isn't lost with the one that dies."""
    release_s: float = 0.3
    """Between two deletions of many due messages: well below the time after which a message comes again."""


class CronRepairTimings(Timings, frozen=True, kw_only=True):
    """How long a timer of an entry has to be late before it is missed."""

    grace_ms: int = 10_000
    """How long a timer has to be late."""
    at_once: int = 100
    """Repairs in one round; the rest waits for the next."""
