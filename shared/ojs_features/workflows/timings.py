"""Durations of workflows: how long their requests and timers wait for each other, and how long records stay."""

from __future__ import annotations

from typing import ClassVar

from ojs_link.timings import Order, Timings


class WorkflowTimings(Timings, frozen=True, kw_only=True):
    """When a creation counts as given up, and how long records stay that a workflow leaves."""

    idle_s: float = 120.0
    """A workflow of which nothing was needed for so long is read again if something is."""
    open_ms: int = 5_000
    """A younger claim belongs to a request that may be at it; an older one is taken over by the next request."""
    given_up_ms: int = 60_000
    """No request is at a creation for as long as that. One that is would fail; it would not harm anything."""
    again_ms: int = 5_000
    """The next check of a claim whose timer has fired before that."""
    early_ms: int = 50
    """A timer that fires ahead of its record's by less than this is that one."""
    double_s: float = 2.0
    """How long a request waits for an equal one that is under way."""
    double_look_s: float = 0.05
    """Between two checks of that one."""
    left_s: int = 3_600
    """How long a finished workflow's record stays after the timer that removes its definition."""
    vacated_s: int = 60
    """How long the place of a record tells followers of the bucket that it was cleared."""
    order: ClassVar[Order] = (
        ("open_ms", "given_up_ms", "what a request is creating would be removed"),
        ("double_look_s", "double_s", "the equal request would be checked once"),
    )
