"""How long reads and writes of records are tried, and with which pauses."""

from __future__ import annotations

from typing import ClassVar

from ojs_link.timings import Order, Timings


class WriteTimings(Timings, frozen=True, kw_only=True):
    """How long a write is tried that NATS doesn't answer, or that others are ahead of; and how long answers are waited for."""

    deadline_s: float = 3.0
    """For how long a write without an answer is tried, while its stream has no leader: longer than one request may
    take, so that a write whose answer is lost is still looked for.
    """
    first_pause_s: float = 0.02
    """The pause before its second try; each is twice as long as the one before."""
    last_pause_s: float = 0.25
    """The longest of these pauses."""
    budget_s: float = 5.0
    """For how long a compare-and-swap is tried against others' writes. It outlasts a cluster that chooses a leader."""
    batch_budget_s: float = 8.0
    """The same for a batch, which others may fight for through many gateways."""
    first_conflict_s: float = 0.02
    """The pause after the third conflict in a row; each is twice as long as the one before."""
    last_conflict_s: float = 0.3
    """The longest of these pauses."""
    turn_s: float = 20.0
    """How long a turn is waited for at a record that many requests of this process change."""
    batch_s: float = 10.0
    """For how long an atomic batch is tried."""
    batch_answer_s: float = 10.0
    """How long its answer is waited for: nats-server stores all of it before."""
    hints_s: float = 3.0
    """For how long storing the timers and tokens of a batch is tried."""
    read_s: float = 2.0
    """How long an answer with tokens is waited for."""
    reads_s: float = 3.0
    """How long an answer with many records is waited for."""
    replica_s: float = 0.5
    """How long a replica is waited for before the leader is asked."""
    order: ClassVar[Order] = (
        ("first_pause_s", "last_pause_s", "pauses would grow shorter"),
        ("first_conflict_s", "last_conflict_s", "pauses would grow shorter"),
        ("replica_s", "deadline_s", "a replica that hangs would cost a whole try"),
        ("budget_s", "batch_budget_s", "a batch would be given up before one job"),
        ("budget_s", "turn_s", "one request's tries would be longer than the next one waits for them"),
    )
