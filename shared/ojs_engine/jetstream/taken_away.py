"""Subscriptions that nats-server has taken away from a connection, and how they come back.

A reload that takes a right from a user ends the subscriptions that need it and keeps the connection. nats-server doesn't
make them again when the right is given back, so this process asks for them again until they hold.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, Final

import structlog

from ojs_engine.base.loops import stop_loop
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

_REFUSED: Final = re.compile(r'permissions violation for subscription to "([^"]*)"', re.IGNORECASE)
_REMEDY: Final = "give the user of this process the right to subscribe there; it asks again every few seconds"


class TakenAwayTimings(Timings, frozen=True, kw_only=True):
    """When subscriptions that nats-server refuses are asked for again."""

    first_s: float = 0.5
    """The first pause; each is twice as long as the one before."""
    longest_s: float = 5.0
    """The longest."""
    order: ClassVar[Order] = (("first_s", "longest_s", "pauses would grow shorter"),)


class TakenAway:
    """The subscriptions of one connection that nats-server refuses.

    `ids` returns the ids of the connection's subscriptions to a subject, in any case of its letters; `subscribe` asks for
    those that are still wanted; `answered` waits until nats-server has read all that was sent, and returns whether it has.
    """

    def __init__(
        self,
        name: str,
        ids: Callable[[str], Iterable[int]],
        subscribe: Callable[[Iterable[int]], set[int]],
        answered: Callable[[], Awaitable[bool]],
        timings: TakenAwayTimings,
    ) -> None:
        self._timings = timings
        self._name = name
        self._ids = ids
        self._subscribe = subscribe
        self._answered = answered
        self._missing: dict[int, str] = {}
        """Subjects by the id of their subscription."""
        self._refused: set[int] = set()
        """Those that were refused since they were last asked for."""
        self._task: asyncio.Task[None] | None = None

    @property
    def subject(self) -> str | None:
        """One of the subjects that this process should hear and doesn't; None if it hears all."""
        return next(iter(self._missing.values()), None)

    def heard(self, error: str) -> None:
        """Take up what nats-server says of this connection."""
        found = _REFUSED.search(error)
        if found is None:
            return
        ids = set(self._ids(found[1]))
        if ids and not self._missing:
            log.error("nats-server refuses a subscription", nats=self._name, subject=found[1], remedy=_REMEDY)
        self._refused |= ids
        self._missing |= dict.fromkeys(ids, found[1])
        if ids and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._ask_again(), name=f"{self._name}-subscriptions")

    async def stop(self) -> None:
        await stop_loop(self._task)
        self._missing.clear()

    async def _ask_again(self) -> None:
        pause_s = self._timings.first_s
        while self._missing:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._timings.longest_s)
            self._refused.clear()
            wanted = self._subscribe(list(self._missing))
            whole = await self._answered()
            self._missing = {
                sid: subject for sid, subject in self._missing.items() if sid in wanted and (not whole or sid in self._refused)
            }
        log.info("nats-server lets this process listen again", nats=self._name)
