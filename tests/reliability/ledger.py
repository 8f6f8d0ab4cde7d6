"""What clients asked for and were told: all that a run is judged by from the outside.

Times are Unix seconds of this machine. An answer is either known or it isn't: what got no answer, or one that leaves it open
(503, 504), may have had its effect, may have it yet, or never.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """What a job is there to show."""

    PLAIN = "plain"
    DELAYED = "delayed"
    UNIQUE = "unique"
    CONCURRENT = "concurrent"
    KEYED = "keyed"
    RATED = "rated"
    BOUNDED = "bounded"
    BATCH = "batch"
    BULK = "bulk"
    STEP = "step"
    TICK = "tick"


class Verdict(StrEnum):
    """How a request ended, as far as its client knows."""

    OPEN = "open"
    DONE = "done"
    REFUSED = "refused"


class Asked(Struct, kw_only=True):
    """A job that a client wants to be there, under an id of its own."""

    job_id: str
    kind: Kind
    queue: str
    sent: float
    """When it was asked for first."""
    key: str | None = None
    """What it is unique by, or limited by."""
    group: str | None = None
    """The batch that it came with."""
    not_before: float = 0.0
    answered: float = 0.0
    verdict: Verdict = Verdict.OPEN


class Hold(Struct, kw_only=True):
    """A job in a worker's hands."""

    job_id: str
    attempt: int
    worker: str
    kind: Kind
    key: str | None = None
    asked: float
    """When the fetch was sent."""
    got: float
    """When its answer came."""
    lease_ends: float
    """Not before this, as far as the worker knows: counted from when it asked, for the job or for more time."""
    finish: str | None = None
    """`ack` or `nack`; None if the worker let it go."""
    finish_sent: float = 0.0
    """When that was sent first."""
    verdict: Verdict = Verdict.OPEN
    retry_s: float = 0.0
    """How long the job rests after a nack."""

    @property
    def held_until(self) -> float:
        """Nobody else may hold it before."""
        return min(self.lease_ends, self.finish_sent) if self.finish else self.lease_ends


class Flow(Struct, kw_only=True):
    """A workflow that a client wants. `steps` are the types of its jobs; `after` says which come after which."""

    flow_id: str
    steps: tuple[str, ...]
    after: tuple[tuple[str, str], ...] = ()
    sent: float = 0.0
    verdict: Verdict = Verdict.OPEN


class Disturbance(Struct):
    """A fault, from its beginning until it was undone."""

    what: str
    began: float
    ended: float = 0.0


class Ledger:
    """All of one run."""

    def __init__(self) -> None:
        self.asked: dict[str, Asked] = {}
        self.holds: list[Hold] = []
        self.flows: dict[str, Flow] = {}
        self.bulks: dict[str, tuple[int, Verdict]] = {}
        """Bulk pushes whose jobs have no ids of their own, by idempotency key: how many jobs, and how it ended."""
        self.crons: dict[str, float] = {}
        """The seconds between the ticks of each entry."""
        self.disturbances: list[Disturbance] = []
        self.pushed: list[float] = []
        """When a push was answered as done."""
        self.failures: list[str] = []
        """Answers that say that the server doesn't know what went wrong (500)."""

    @property
    def longest_gap_s(self) -> float:
        """The longest time in which no push was answered as done."""
        return max((later - earlier for earlier, later in zip(self.pushed, self.pushed[1:], strict=False)), default=0.0)

    @property
    def recovery_s(self) -> float:
        """The longest time from the end of a fault to the next push that was answered as done."""
        found = [0.0]
        for fault in self.disturbances:
            after = next((at for at in self.pushed if at >= fault.ended), None)
            found.append((after or fault.ended) - fault.ended)
        return max(found)
