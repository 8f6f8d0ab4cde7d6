"""Server time, so that deadlines mean the same to every process and to the engine that keeps them (architecture §6)."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from ojs_nats.store.api import call
from ojs_nats.store.link import Link
from ojs_nats.transitions.result import Moment

__all__ = ["ServerClock"]

_LATE_MS: Final = 1_000


class ServerClock:
    """This process's clock corrected by its measured distance from nats-server's, and the source of fresh ops."""

    def __init__(self, wall: Callable[[], float] = time.time, chance: Callable[[], float] = random.random) -> None:
        self._wall = wall
        self._chance = chance
        self._offset = 0.0
        self._prefix = secrets.token_hex(6)
        self._count = 0

    def now(self) -> int:
        """Server time in Unix milliseconds."""
        return int((self._wall() + self._offset) * 1000)

    def moment(self, now: int | None = None) -> Moment:
        """A moment with an op of its own: unique per process start and per call. `now` may be a moment that has passed."""
        self._count += 1
        op = f"{self._prefix}{self._count:x}"
        if now is None:
            return Moment(now=self.now(), op=op, chance=self._chance())
        late_ms = self.now() - now
        return Moment(now=now, op=op, chance=self._chance(), late_ms=late_ms if late_ms >= _LATE_MS else 0)

    async def measure(self, link: Link, stream: str) -> float:
        """Compare with the server by one request; returns its round trip in seconds.

        The answer proves no more than that the server's clock read `ts` at some moment of the round trip. A known distance
        that agrees with that stays, so that one slow answer doesn't move every deadline by half its delay.
        """
        before = self._wall()
        info = await call(link, f"STREAM.INFO.{stream}")
        after = self._wall()
        if "ts" in info:
            there = datetime.fromisoformat(info["ts"]).timestamp()
            if not there - after <= self._offset <= there - before:
                self._offset = there - (before + after) / 2
        return after - before
