"""The durations of fetching."""

from __future__ import annotations

from ojs_engine.store.dispatch.head_tokens import TokenTimings
from ojs_engine.store.dispatch.in_hand import ClaimTimings
from ojs_engine.store.dispatch.queue_consumers import ConsumerTimings
from ojs_engine.store.dispatch.wakeups import WakeupTimings
from ojs_link.timings import Timings


class DispatchTimings(Timings, frozen=True, kw_only=True):
    """The times of fetching, and of its parts."""

    fallback_look_s: float = 1.0
    """How often a fetch that waits looks though nothing has woken it."""
    further_looks_s: tuple[float, ...] = (0.004, 0.02)
    """A wake may come before its token can be pulled: a scan without a job is repeated, each so long after the last."""
    patience_s: float = 0.02
    """How long a fetch waits for blocked tokens to be held before it checks the next priority."""
    cleared_s: float = 1.0
    """How long a fetch that doesn't wait for jobs waits for that if there is nothing else."""
    slow_s: float = 1.0
    """A queue that took this long to fail took long; after two of them the fetch asks no further ones."""
    close_s: float = 1.0
    """How long looks of cancelled fetches are waited for when the process stops."""
    consumers: ConsumerTimings = ConsumerTimings()
    """Durable consumers."""
    tokens: TokenTimings = TokenTimings()
    """Reading tokens."""
    claims: ClaimTimings = ClaimTimings()
    """Judging them."""
    wakeups: WakeupTimings = WakeupTimings()
    """Hearing of them."""
