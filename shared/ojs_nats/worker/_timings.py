"""The durations of a worker in one place."""

from __future__ import annotations

from typing import ClassVar

from ojs_link.timings import Order, Timings


class WorkerTimings(Timings, frozen=True, kw_only=True):
    """How long a worker waits for things."""

    clean_up_s: float = 2.0
    """The time that a coroutine has to end once it has been cancelled; then its attempt is over whether it has ended or not."""
    hand_back_s: float = 3.0
    """The time in which jobs are reported that are handed back at the end of the grace period."""
    farewell_s: float = 1.0
    """The time that threads have to notice that they are to stop, once their jobs have been handed back."""
    closing_s: float = 8.0
    """The longest time of everything behind the grace period: handing back, signing off, closing connections."""
    sign_off_s: float = 2.0
    """How long the answer to the deregistration is waited for."""
    leave_s: float = 3.0
    """The time that threads have to end in, once the worker has; then its process ends without them."""
    cancelled_s: float = 0.1
    """The time that a registration has to end in before it is cancelled again."""
    carried_at_most_s: float = 0.1
    """How long a success waits for a fetch to carry it, before it is sent by itself."""
    report_at_least_s: float = 60.0
    """For how long the end of an attempt is reported at the least; longer, if the job's lease is."""
    report_pause_s: float = 0.2
    """The first pause between two tries of a report; each is twice as long as the one before."""
    report_longest_pause_s: float = 5.0
    """The longest of these pauses."""
    retry_after_at_most_s: float = 30.0
    """A server, or what is before it, that asks for a longer pause is asked after this one."""
    progress_s: float = 2.0
    """For how long a report of progress is tried: the next one says more."""
    fetch_pause_s: float = 1.0
    """The pause behind a fetch that failed."""
    away_ms: int = 15_000
    """For how long a job stays away that this worker can't run, and another one may, or whose report the server
    refused with the time that it named.
    """
    rollout_s: float = 600.0
    """For how long after its push a job with more arguments than its handler takes is handed back, and not
    discarded: its producer is newer than this worker, and workers as new as it may be about to start.
    """
    beat_shortest_s: float = 0.2
    """The shortest time between two heartbeats that renew leases."""
    beat_longest_s: float = 3_600.0
    """The longest time between two heartbeats."""
    beat_again_s: float = 5.0
    """The pause behind a heartbeat that couldn't be made."""
    beat_last_s: float = 0.5
    """The time that a heartbeat under way has to be answered in, once there are to be no more."""
    stuck_s: float = 5.0
    """The log warns of a loop that is blocked for longer than this and the time between two heartbeats."""
    process_end_s: float = 1.0
    """The time that a process of a handler has to end in which has closed its connection."""
    order: ClassVar[Order] = (
        ("report_pause_s", "report_longest_pause_s", "pauses would grow shorter"),
        ("beat_shortest_s", "beat_longest_s", "there would be no time between the two"),
        ("ending_s", "closing_s", "the worker would be cut off before it has signed off"),
    )
    usual: ClassVar[Order] = (
        ("carried_at_most_s", "hand_back_s", "a success would not be reported before the end"),
        ("report_longest_pause_s", "report_at_least_s", "an outcome would be tried once"),
    )

    @property
    def ending_s(self) -> float:
        """The parts of `closing_s` that follow each other: handing back, threads, the last heartbeat, signing off."""
        return self.hand_back_s + self.farewell_s + self.beat_last_s + self.sign_off_s
