"""The loop that takes due messages to their handler, from start to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from ojs_core.base.loops import start_loop, stop_loop
from ojs_core.base.waiting import within
from ojs_core.jetstream.due_messages import Due, DueMessages

_LATER_MS: Final = 500
_STOP_S: Final = 2.0


class DueLoop:
    """Hands over one batch after another. What the handler doesn't answer for is given back and comes again soon.

    `held` says when nothing may be handed over; what is due then is due afterwards. `tell`: warn while NATS is away.
    """

    def __init__(
        self,
        name: str,
        messages: DueMessages,
        handle: Callable[[list[Due]], Awaitable[None]],
        held: Callable[[], Awaitable[bool]] | None = None,
        *,
        tell: bool = True,
        held_s: float = 0.25,
    ) -> None:
        """`held_s` is how long it rests between two questions whether it is held."""
        self._held_s = held_s
        self._name = name
        self._messages = messages
        self._handle = handle
        self._held = held
        self._tell = tell
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._stopping = False

    async def start(self) -> None:
        self._task = start_loop(self._name, self._turn, tell=self._tell)

    async def stop(self) -> None:
        """Finish the batch in hand; a pull that waits is dropped, what it would bring comes back to another."""
        self._stopping = True
        if self._task is None:
            return
        await within(_STOP_S, self._idle)
        await stop_loop(self._task)

    async def _turn(self) -> None:
        self._idle.set()
        if self._stopping:
            return
        if self._held is not None and await self._held():
            await asyncio.sleep(self._held_s)
            return
        batch = await self._messages.next()
        if not batch:
            return
        self._idle.clear()
        try:
            if self._held is not None and await self._held():
                for due in batch:
                    self._messages.later(due, _LATER_MS)
            else:
                await self._handle(batch)
        finally:
            self._messages.give_back(batch)
            self._idle.set()
