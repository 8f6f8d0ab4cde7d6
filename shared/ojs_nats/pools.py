"""Fair pools: queues that share what a fetch gets by their weights (ojs-fair-scheduling §6, §7); pure.

Without a pool, queues are served from left to right. Within one, every queue has a virtual time that grows by 1/weight with
each of its jobs, and the one that is furthest behind comes next. A queue that has nothing gains no claim to later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

__all__ = ["Pool", "Shares", "Strategy"]

Strategy = Literal["weighted", "round-robin", "strict"]


class Pool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Key `pool.<name>`. `strict` serves its queues as a fetch lists them."""

    name: str
    strategy: Strategy = "round-robin"
    weights: dict[str, int] = {}
    """By queue; 1 each for `round-robin`."""
    created_at: int = 0
    updated_at: int = 0
    deleted: bool = False
    op: str = ""


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
