"""Which lane of its priority a job's token takes (docs/adr/030).

Tokens of jobs that no key limits take the line. Those of limited keys have lanes beside it, so that however many of them have
no permit, nobody else waits while they are put aside: `key`, and `late` for those that will most likely have to wait. Hand-out
merges the lanes by age, so which one a token takes decides nothing but what it may be stuck behind.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_core.base.lru import Lru
from ojs_core.domain.job import Job
from ojs_core.domain.rate_limits.policy import LimitPolicy, policy_of
from ojs_core.jetstream.subjects import Lane

_QUIET_S: Final = 10.0
"""A key that nobody pushed to for so long begins anew."""
_MOST: Final = 100
"""Tokens of one key that are taken for those that may soon start, whatever its limit is."""
_KNOWN: Final = 10_000
"""Keys that this process remembers."""


class _Crowd:
    """How many tokens of a key took the lane `key`, and when (loop time) one was last pushed."""

    __slots__ = ("at", "number")

    def __init__(self) -> None:
        self.number = 0
        self.at = 0.0


class Lanes:
    """Guesses from what this process has pushed and met lately; asks nobody."""

    def __init__(self) -> None:
        self._crowds: Lru[_Crowd] = Lru(_KNOWN)

    def of(self, job: Job) -> Lane:
        """The lane of a job's next token."""
        policy = policy_of(job) if job.rate_limit else None
        if policy is None or policy.key is None:
            return "line"
        crowd = self._crowd(policy.key)
        if crowd.number >= _places(policy):
            return "late"
        crowd.number += 1
        return "key"

    def blocked(self, key: str) -> None:
        """Jobs of the key have been put aside: its next ones come behind them."""
        self._crowd(key).number = _MOST

    async def clear(self) -> None:
        """Forget everything (reset)."""
        self._crowds.clear()

    def _crowd(self, key: str) -> _Crowd:
        now = asyncio.get_running_loop().time()
        crowd = self._crowds.get(key)
        if crowd is None or now - crowd.at > _QUIET_S:
            crowd = _Crowd()
            self._crowds.put(key, crowd, 1)
        crowd.at = now
        return crowd


def _places(policy: LimitPolicy) -> int:
    """How many jobs of a key may start at once, as far as its own policy says."""
    rates = [rate.limit for rate in (policy.rate, policy.throttle) if rate is not None]
    concurrency = [] if policy.concurrency is None else [policy.concurrency]
    return min([_MOST, *concurrency, *rates])
