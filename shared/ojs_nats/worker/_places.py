"""The places of a worker: how many of its jobs run, and how many more it asks for."""

from __future__ import annotations

from typing import Final

import msgspec

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


class Places:
    """The places of `concurrency` jobs that run at a time. A place is taken from the fetch that asks for its job
    until the server has heard how that ended, so no more jobs are active than there are places.
    """

    def __init__(self, concurrency: int) -> None:
        self.running = 0
        self._concurrency = concurrency

    def wanted(self, load: Load) -> int:
        """Return how many jobs to ask for now, acks included: none while no place is free.

        Where jobs are plenty, up to three fetches are under way, each for a part of the places. Where they
        aren't, an idle worker waits in one, for its free places alone: else it would take what others are free
        for.
        """
        if load.fetches >= (_MOST_FETCHES if load.plenty else 1):
            return 0
        room = load.done + max(self._concurrency - load.held - load.asked, 0)
        if not load.fetches:
            return min(room, _MOST)
        portion = min(max(-(-self._concurrency // _MOST_FETCHES), _PORTION), _MOST)
        return portion if room >= portion else 0

    def take(self) -> bool:
        """Take a place for a job that has come, and return whether one was free."""
        free = self.running < self._concurrency
        self.running += free
        return free

    def vacate(self) -> None:
        """Free the place of a job that ran."""
        self.running -= 1
