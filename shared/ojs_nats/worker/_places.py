"""The places of a worker: which of its jobs run, which wait for a place, and how many more it asks for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

_SOON_S: Final = 0.05
"""Within which jobs begin that are asked for ahead of a free place, by what those before them have taken."""
_UNKNOWN_S: Final = 1.0
"""The time that jobs are believed to take until some have ended."""
_WEIGHT: Final = 0.1
"""The weight of the last job in that time."""
_SHORTEST_S: Final = 1e-6
_MOST_FETCHES: Final = 3
_PORTION: Final = 25
"""Fewer jobs aren't asked for beside another fetch: a request costs more than they gain."""
_MOST: Final = 1_000
"""More than this the server doesn't hand out at a time."""


class Load(msgspec.Struct, frozen=True):
    """The state between a worker and the server: `held` jobs that the server takes for active, of which `done` are
    successes that the next fetch can carry; and `fetches` that are under way, which ask for `asked` jobs beyond
    the acks that they bring. `plenty` says that the last fetch brought as many as it was to.
    """

    held: int
    done: int
    fetches: int
    asked: int
    plenty: bool


class Places(Generic[T]):
    """The places of `concurrency` jobs that run at a time. A place is taken from the fetch that asks for its job
    until the server has heard how that ended, so no more jobs are active than there are places.

    Up to `ahead` more are asked for while jobs are so short that it makes no difference to them. `begin` is
    called for one that may run now, `give_up` for one that has waited in vain for `longest_wait_s`: those that run
    take longer than those before them, and other workers may be free.
    """

    def __init__(
        self,
        concurrency: int,
        ahead: int,
        begin: Callable[[T], None],
        give_up: Callable[[T], None],
        *,
        longest_wait_s: float = 0.5,
    ) -> None:
        self.running = 0
        self._concurrency = concurrency
        self._most_ahead = ahead
        self._begin = begin
        self._give_up = give_up
        self._longest_wait_s = longest_wait_s
        self._mean_s = _UNKNOWN_S
        self._waiting: deque[tuple[float, T]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._stuck = False
        """Whether jobs have been given up since a place was last left: others needn't wait to find that out."""

    @property
    def brief(self) -> bool:
        """Whether jobs take so little that one more makes no difference."""
        return self._mean_s <= _SOON_S

    def wanted(self, load: Load) -> int:
        """Return how many jobs to ask for now, acks included: none while no place is free.

        Where jobs are plenty, up to three fetches are under way, each for a part of the places. Where they
        aren't, an idle worker waits in one, for its free places alone: else it would take what others are free
        for.
        """
        if load.fetches >= (_MOST_FETCHES if load.plenty else 1):
            return 0
        limit = self._concurrency + self._ahead(load)
        room = load.done + max(limit - load.held - load.asked, 0)
        if not load.fetches:
            return min(room, _MOST)
        portion = min(max(-(-limit // _MOST_FETCHES), _PORTION), _MOST)
        return portion if room >= portion else 0

    def _ahead(self, load: Load) -> int:
        if not (load.plenty and self.brief):
            return 0
        free = self._concurrency - self.running
        return max(min(self._most_ahead, int(free * _SOON_S / max(self._mean_s, _SHORTEST_S))), 0)

    def put(self, job: T) -> None:
        """A job has come."""
        if self.running < self._concurrency:
            self.running += 1
            self._begin(job)
            return
        if self._stuck:
            self._give_up(job)
            return
        loop = asyncio.get_running_loop()
        self._waiting.append((loop.time() + self._longest_wait_s, job))
        if self._timer is None:
            self._timer = loop.call_later(self._longest_wait_s, self._look)

    def took(self, seconds: float) -> None:
        """A job has run for so long."""
        self._mean_s += (seconds - self._mean_s) * _WEIGHT

    def vacate(self) -> None:
        """A job that ran has left its place: the next one has it."""
        self._stuck = False
        if self._waiting:
            self._begin(self._waiting.popleft()[1])
        else:
            self.running -= 1

    def clear(self) -> None:
        """Forget the jobs that wait."""
        while self._waiting:
            self._give_up(self._waiting.popleft()[1])

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self._waiting[0][0] <= loop.time():
            self._stuck = True
            self._give_up(self._waiting.popleft()[1])
        self._timer = loop.call_at(self._waiting[0][0], self._look) if self._waiting else None
