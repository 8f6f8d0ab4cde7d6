"""The durations of a worker in one place, in seconds."""

from __future__ import annotations

from typing import Final

import msgspec


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """The times that a worker waits for things, in seconds. Tests give their own."""

    clean_up: float = 2.0
    """The time that a coroutine has to end once it has been cancelled; then its attempt is over whether it has ended or not."""
    hand_back: float = 3.0
    """The time in which jobs are reported that are handed back at the end of the grace period."""
    farewell: float = 1.0
    """The time that threads have to notice that they are to stop, once their jobs have been handed back."""
    closing: float = 8.0
    """The longest time of everything behind the grace period: handing back, signing off, closing connections."""
    sign_off: float = 2.0
    """How long the answer to the deregistration is waited for."""
    carried_at_most: float = 0.1
    """How long a success waits for a fetch to carry it, before it is sent by itself."""
    report_at_least: float = 60.0
    """For how long the end of an attempt is reported at the least; longer, if the job's lease is."""
    report_pause: float = 0.2
    """The first pause between two tries of a report; each is twice as long as the one before."""
    report_longest_pause: float = 5.0
    retry_after_at_most: float = 30.0
    """A server, or what is before it, that asks for a longer pause is asked after this one."""
    fetch_pause: float = 1.0
    """The pause behind a fetch that failed."""
    not_here_pause: float = 15.0
    """For how long a job stays away that was handed back since this worker can't run it, and another one may."""
    rollout: float = 600.0
    """For how long after its push a job with more arguments than its handler takes is handed back, and not
    discarded: its producer is newer than this worker, and workers as new as it may be about to start.
    """

    def __post_init__(self) -> None:
        if self.hand_back + self.farewell + self.sign_off > self.closing:
            raise ValueError("closing has to have room for hand_back, farewell and sign_off")


TIMINGS: Final = Timings()
"""The times of every worker that isn't a test's."""
