"""Durations of events for clients."""

from __future__ import annotations

from ojs_link.timings import Timings


class SubscriptionTimings(Timings, frozen=True, kw_only=True):
    """How long subscribers wait."""

    listens_s: float = 2.0
    """How long, at most, a subscriber waits until live events arrive: without NATS it goes on, as with stored ones."""
    again_s: float = 1.0
    """The pause of a socket behind events that could not be read."""
