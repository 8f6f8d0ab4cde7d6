"""The loop that takes due messages to their handler, from start to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from ojs_nats.errors import OjsError
from ojs_nats.store.due import Due, DueMessages

__all__ = ["DueLoop"]

log = structlog.get_logger(__name__)

_PAUSE_S: Final = 0.5
_HELD_S: Final = 0.25
_LATER_MS: Final = 500
_STOP_S: Final = 2.0


class DueLoop:
    """Hands over one batch after another. What the handler doesn't let go of comes back.

    `held` says when nothing may be handed over; what is due then is due afterwards.
    """

    def __init__(
        self,
        name: str,
        messages: DueMessages,
        handle: Callable[[list[Due]], Awaitable[None]],
        held: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._name = name
        self._messages = messages
        self._handle = handle
        self._held = held
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._stopping = False

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """Finish the batch in hand; a pull that waits is dropped, what it would bring comes back to another."""
        self._stopping = True
        if self._task is None:
            return
        if not self._idle.is_set():  # then it ends with its batch
            await asyncio.wait([self._task], timeout=_STOP_S)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._stopping:
            try:
                self._idle.set()
                if self._held is not None and await self._held():
                    await asyncio.sleep(_HELD_S)
                    continue
                batch = await self._messages.next()
                self._idle.clear()
                if batch and self._held is not None and await self._held():
                    for due in batch:
                        self._messages.later(due, _LATER_MS)
                elif batch:
                    await self._handle(batch)
            except OjsError as error:
                log.warning("due messages wait", due=self._name, reason=error.message)
                await asyncio.sleep(_PAUSE_S)
            except Exception:
                log.exception("due messages failed and will come back", due=self._name)
                await asyncio.sleep(_PAUSE_S)
