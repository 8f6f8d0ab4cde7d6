"""What clients asked and were told, call by call, to be judged afterwards (the shape of Jepsen's histories).

A call ends in one of three ways: the server said it is done, the server refused it, or nobody knows (the connection broke,
the time was up, 503, 504): it may have taken effect, may do so yet, or never. A call that could not be sent is no call.
Times are Unix seconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from ojs_engine.domain.job import State

FOREVER: Final = math.inf
"""When a call ends whose answer never came: it may take effect at any later time."""


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Plan(Struct, frozen=True, kw_only=True):
    """What a pushed job is to live by, as far as it decides which lives are lawful."""

    queue: str
    pending: bool = False
    delay_s: float = 0.0
    expires_s: float | None = None
    max_attempts: int = 3
    retry_s: float = 1.0
    """Constant and without jitter, so that the earliest next attempt is known."""


class Seen(Struct, frozen=True):
    """What an answer showed of a job; `attempt` None where it doesn't say."""

    job_id: str
    state: State
    attempt: int | None = None


class Call(Struct, frozen=True, kw_only=True):
    """One request and its answer.

    `op`: push, activate, fetch, ack, nack, requeue, cancel, heartbeat or get. `ended` is `FOREVER` for an unknown outcome.
    """

    op: str
    client: str
    started: float
    ended: float
    outcome: Outcome
    status: int | None = None
    job_id: str | None = None
    plan: Plan | None = None
    queues: tuple[str, ...] = ()
    lease_s: float = 0.0
    worker: str | None = None
    attempt: int | None = None
    """The attempt that the request named."""
    code: str | None = None
    """The error code that a nack reported."""
    seen: tuple[Seen, ...] = ()


class Fault(Struct, frozen=True):
    """A disturbance of the system, from its start until it was seen to work again."""

    what: str
    started: float
    ended: float


class History:
    """All calls of all clients, and the faults they lived through."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.faults: list[Fault] = []

    def add(self, call: Call) -> None:
        self.calls.append(call)

    def of(self, *ops: str) -> Iterator[Call]:
        return (call for call in self.calls if call.op in ops)

    @property
    def plans(self) -> dict[str, Plan]:
        """Every job that a push was sent for."""
        return {call.job_id: call.plan for call in self.of("push") if call.job_id is not None and call.plan is not None}

    def lost_fetches(self) -> list[tuple[float, float, tuple[str, ...]]]:
        """(start, end, queues) of the fetches that may have claimed what nobody heard of: those whose answer was lost, and
        those during a fault, in which the gateway itself may have lost the answer to a claim.
        """
        return [
            (call.started, call.ended, call.queues)
            for call in self.of("fetch")
            if call.outcome is Outcome.UNKNOWN or self._disturbed(call)
        ]

    def summary(self, finals: Mapping[str, dict[str, Any] | None]) -> str:
        """Some lines for the test's report: a run that did little proves little."""
        by_op = Counter((call.op, call.outcome) for call in self.calls)
        states = Counter(final["state"] if final else "absent" for final in finals.values())
        attempts = sum(final["attempt"] for final in finals.values() if final)
        told = sum(len(call.seen) for call in self.of("fetch"))
        lines = [f"{len(self.calls)} calls, {len(self.plans)} jobs, {len(self.faults)} faults"]
        lines += [
            f"  {op:10}" + "  ".join(f"{outcome} {by_op[op, outcome]:6}" for outcome in Outcome)
            for op in sorted({op for op, _ in by_op})
        ]
        lines.append("  final      " + "  ".join(f"{state} {number}" for state, number in sorted(states.items())))
        lines.append(f"  attempts   {attempts}, of which clients were told {told}")
        return "\n".join(lines)

    def _disturbed(self, call: Call) -> bool:
        return any(fault.started <= call.ended and call.started <= fault.ended for fault in self.faults)
