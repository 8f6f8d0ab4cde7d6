"""Fair pools: queues that share what a fetch gets by their weights (ojs-fair-scheduling §6 to §8); pure.

Without a pool, queues are served from left to right. Within one, every queue has a virtual time that grows by 1/weight with
each of its jobs, and the one that is furthest behind comes next. A queue that has nothing gains no claim to later.
A pool may guarantee each of its queues a part of what is handed out, whatever its strategy (docs/adr/029).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ojs_api import words
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At, Ms, Positive
from ojs_engine.domain.starvation import USUAL_INTERVAL_MS, StarvationClock

Strategy = words.PoolStrategy

_ROUNDING: Final = 1e-9


class Prevention(Struct, frozen=True, kw_only=True):
    """What each queue of a pool is guaranteed while it has jobs."""

    interval_ms: Ms = USUAL_INTERVAL_MS
    """A queue that got nothing for so long comes next, with one job."""
    ratio: float = 0.05
    """The part of the jobs handed out that is each queue's."""


class Pool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Key `pool.<name>`. `strict` serves its queues as a fetch lists them."""

    name: str
    strategy: Strategy = "round-robin"
    weights: dict[str, Positive] = {}
    """By queue; 1 each for `round-robin`."""
    prevention: Prevention | None = None
    """Of starvation; None leaves it to the strategy."""
    isolated: bool = False
    """Whether its queues give jobs only to workers that name the pool (ojs-fair-scheduling §6.3)."""
    extensions: Extensions = {}
    created_at: At = 0
    updated_at: At = 0
    deleted: bool = False
    op: str = ""

    @property
    def fair(self) -> bool:
        """Whether its queues are served in any other way than from left to right."""
        return self.strategy != "strict" or self.prevention is not None


class Shares:
    """What one process has handed out of a pool's queues so far."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    def plan(self, weights: Mapping[str, int], queues: Sequence[str], count: int) -> dict[str, int]:
        """How many of `count` jobs each queue should give, the one whose turn it is first; all of `queues` are in it."""
        now = min((self._times[queue] for queue in queues if queue in self._times), default=0.0)
        times = {queue: max(self._times.get(queue, now), now) for queue in queues}
        shares: dict[str, int] = {}
        for _ in range(count):
            queue = min(queues, key=times.__getitem__)
            shares[queue] = shares.get(queue, 0) + 1
            times[queue] += 1 / weights[queue]
        return shares | {queue: 0 for queue in sorted(queues, key=times.__getitem__) if queue not in shares}

    def served(self, weights: Mapping[str, int], numbers: Mapping[str, int], emptied: Sequence[str]) -> None:
        """Note what each queue gave, and which had nothing more: those begin level with the others when they have again."""
        now = min((self._times[queue] for queue in numbers if queue in self._times), default=0.0)
        for queue, number in numbers.items():
            self._times[queue] = self._times.get(queue, now) + number / weights[queue]
        busy = [self._times[queue] for queue in numbers if queue not in emptied]
        level = min(busy, default=max(self._times.values(), default=0.0))
        for queue in emptied:
            self._times[queue] = max(self._times.get(queue, level), level)


class MinimumShares:
    """What one process owes to the queues of a pool that prevents starvation. Times are Unix milliseconds.

    Every job that is handed out earns each queue of that fetch `ratio`, and the queue that it comes from pays 1 for it. Nothing
    is earned by a queue that had nothing more, and more than its part in the past is not held against it. So of any n jobs in
    a row a queue gets at least n * ratio, less one where several are owed the same job.
    """

    def __init__(self) -> None:
        self._turns: StarvationClock[str] = StarvationClock()
        self._credits: dict[str, float] = {}

    def overdue(self, prevention: Prevention, queues: Sequence[str], now: int) -> list[str]:
        """The queues that have waited for the interval, the longest wait first."""
        return self._turns.overdue(queues, prevention.interval_ms, now)

    def of(self, prevention: Prevention, queues: Sequence[str], count: int, overdue: Sequence[str]) -> dict[str, int]:
        """How many of `count` jobs have to be asked of each queue; those that are owed nothing are left out."""
        floors: dict[str, int] = dict.fromkeys(overdue[:count], 1)
        left = count - len(floors)
        for queue in sorted(queues, key=lambda queue: -self._credits.get(queue, 0.0)):
            owed = int(self._credits.get(queue, 0.0) + prevention.ratio * count + _ROUNDING)
            more = min(left, owed - floors.get(queue, 0))
            if more > 0:
                floors[queue] = floors.get(queue, 0) + more
                left -= more
        return floors

    def served(self, prevention: Prevention, numbers: Mapping[str, int], emptied: Sequence[str], now: int) -> None:
        """Note what each queue gave, and which had nothing more."""
        total = sum(numbers.values())
        for queue, number in numbers.items():
            earned = self._credits.get(queue, 0.0) + prevention.ratio * total - number
            self._credits[queue] = 0.0 if queue in emptied else max(0.0, earned)
        self._turns.had([queue for queue, number in numbers.items() if number or queue in emptied], now)


class DispatchHistory:
    """What one process knows of a pool's fetches."""

    def __init__(self) -> None:
        self._shares = Shares()
        self._minimum_shares = MinimumShares()

    def plan(self, pool: Pool, queues: Sequence[str], count: int, now: int) -> tuple[dict[str, int], list[str]]:
        """How many of `count` jobs each queue should give, in order, and which only because they starved.

        The shares count at once, or fetches at the same time would all be given to the same queue; `served` corrects them.
        """
        if pool.strategy == "strict":
            shares = {queues[0]: count} | dict.fromkeys(queues[1:], 0)
        else:
            shares = self._shares.plan(pool.weights, queues, count)
        starved: list[str] = []
        if pool.prevention is not None:
            shares, starved = self._guaranteed(pool.prevention, shares, queues, count, now)
        if pool.strategy != "strict":
            self._shares.served(pool.weights, shares, [])
        return shares, starved

    def _guaranteed(
        self, prevention: Prevention, shares: dict[str, int], queues: Sequence[str], count: int, now: int
    ) -> tuple[dict[str, int], list[str]]:
        overdue = self._minimum_shares.overdue(prevention, queues, now)
        raised = _raised(shares, self._minimum_shares.of(prevention, queues, count, overdue))
        return raised, [queue for queue in overdue[:count] if not shares[queue]]

    def served(
        self, pool: Pool, planned: Mapping[str, int], numbers: Mapping[str, int], emptied: Sequence[str], now: int
    ) -> None:
        """Note what came of a plan."""
        if pool.strategy != "strict":
            more = {queue: number - planned[queue] for queue, number in numbers.items()}
            self._shares.served(pool.weights, more, emptied)
        if pool.prevention is not None:
            self._minimum_shares.served(pool.prevention, numbers, emptied, now)


def _raised(shares: dict[str, int], floors: Mapping[str, int]) -> dict[str, int]:
    """Shares that reach the floors, those with a floor first; who has most above its own gives what the others lack."""
    count = sum(shares.values())
    raised = {queue: max(floor, shares[queue]) for queue, floor in floors.items()}
    raised |= {queue: share for queue, share in shares.items() if queue not in floors}
    for _ in range(sum(raised.values()) - count):
        richest = max(raised, key=lambda queue: raised[queue] - floors.get(queue, 0))
        raised[richest] -= 1
    return raised
