"""Gates: where a feature may hold jobs back, at their push and before their claim; and the order of a fetch's queues.

The engine calls a gate only for jobs that ask for it and for queues whose settings have one. It calls none for a
plain job of a plain queue, and none at all where no feature has brought one. It is the same for an order of queues.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Literal, NamedTuple, Protocol

from msgspec import Struct

from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.jetstream.subjects import Lane

Asks = Callable[[Job], object]
"""Tells by a job's members whether it asks for a gate. An `attrgetter` costs no Python call."""


class LaneRule(NamedTuple):
    """The lane of a job's next token, for jobs that ask for another than the line."""

    asks: Asks
    lane: Callable[[Job], Lane]


class PushGate(Protocol):
    """Sees new jobs that ask for it before they are stored."""

    @property
    def asks(self) -> Asks: ...

    async def note(self, drafts: Sequence[Job]) -> None:
        """Note jobs that are about to be stored. Raises OjsError backend_unavailable."""


class Room(NamedTuple):
    """How many jobs of a queue may start now; `announce` says that jobs wait for room where there is none."""

    number: int
    announce: Callable[[], Awaitable[None]] | None = None


class QueueGate(Protocol):
    """The gate of a queue by its settings, made anew when they change."""

    async def room(self, queue: str) -> Room:
        """Return how many jobs may start. Raises OjsError backend_unavailable."""


class Candidate(NamedTuple):
    """A job in hand whose transition of the `moment` is to be written over its revision `expects`. `data` is its
    token's, which may come from the `front`. A job that has outlived a limit of its own doesn't start: it needs no
    leave.
    """

    job: Job
    starts: bool
    moment: Moment
    expects: int
    data: bytes
    front: bool


class Start(Struct, frozen=True):
    """Leave to start, no earlier than `at` (server time, Unix ms), with these permits until the job ends."""

    at: int = 0
    permits: tuple[str, ...] = ()


FREE: Final = Start()
"""The leave of a job that no gate has judged."""

TokenFate = Literal["held", "back"]
Verdict = Start | Transition | TokenFate
"""The fate of a candidate: it goes on; or this is written instead; or its token is safe elsewhere (`held`), or has to
return to its place (`back`).
"""


class Verdicts(NamedTuple):
    """A verdict on each candidate. `opens_at`: when the queue's own gate has room again by the passing of time."""

    verdicts: Sequence[Verdict]
    opens_at: int | None = None


class StartGate(Protocol):
    """Decides which of the jobs in hand may start. Everything that waits raises OjsError backend_unavailable."""

    @property
    def asks(self) -> Asks: ...

    def of_queue(self, config: QueueConfig) -> QueueGate | None:
        """Return the gate that a queue has by its settings."""

    async def judge(self, queue: str, own: QueueGate | None, candidates: Sequence[Candidate]) -> Verdicts:
        """Judge candidates that are wanted, from a queue that may have a gate of its `own`.

        Once the gate has sent one back, it sends all back that follow.
        """

    async def turn_away(self, candidates: Sequence[Candidate]) -> Sequence[Verdict]:
        """Judge candidates of which none is to start: hold tokens, or send them back."""

    async def refused(self, unstarted: Iterable[tuple[Candidate, Start]]) -> None:
        """Take leaves back that led to no start, once each."""

    async def missed(self, job: Job) -> None:
        """Note that a token of a job that asks led to no claim."""

    async def emptied(self, queue: str, last: str | None) -> None:
        """Note that a fetch got all of a queue whose gate had sent jobs back; `last` is its last job."""

    async def held(self, jobs: Sequence[Job], grace_ms: int) -> set[str]:
        """Return the ids of those available jobs of one queue whose tokens the gate may well hold. A token may be
        stored so long after its job became available.
        """

    def held_under(self, job: Job) -> str | None:
        """Return the subjects where the gate holds tokens of such a job; None if it never does."""


class FetchPlan(Protocol):
    """The shares of one fetch."""

    @property
    def shares(self) -> Mapping[str, int]:
        """How many jobs to ask of each queue at first, in the order in which to ask."""

    def served(self, numbers: Mapping[str, int], emptied: Sequence[str]) -> None:
        """Note what each queue gave, and which had nothing more."""


class QueueOrder(Protocol):
    """Decides which queues of a fetch are served, and in which order. It isn't asked about fetches from other queues."""

    @property
    def queues(self) -> AbstractSet[str] | None:
        """The queues that it decides about; None while it doesn't know them."""

    async def learn(self) -> None:
        """Return when it knows them. Raises OjsError backend_unavailable."""

    def open_to(self, queues: Sequence[str], pool: str | None) -> Sequence[str]:
        """Return those of the queues that a worker may have jobs of, by what it names in its fetch."""

    def plan(self, queues: Sequence[str], count: int) -> FetchPlan | None:
        """Return how to serve a fetch of so many jobs; None if its queues are served from left to right."""

    async def intervals(self) -> Mapping[str, int]:
        """Return by queue after how many milliseconds without a job it is starved, where that isn't as usual.

        Raises OjsError backend_unavailable.
        """
