"""The loop that takes due messages to their handler, from start to stop, and handlers that take them one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, TypeVar

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.waiting import within
from ojs_engine.jetstream.due_messages import Due, DueMessages
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

T = TypeVar("T")


class DueLoopTimings(Timings, frozen=True, kw_only=True):
    """How a loop rests and ends."""

    held_s: float = 0.25
    """Between two questions whether it is held."""
    later_ms: int = 500
    """When messages come again that were pulled while it was."""
    stop_s: float = 2.0
    """How long the batch in hand is waited for at its end."""


class Again(NamedTuple):
    """Have the message again after so long."""

    ms: int


Handled = Literal["done", "leave"] | Again
"""What becomes of a message: it goes, it comes again soon, or it comes again at a time."""


async def contained(what: str, name: str, work: Awaitable[T]) -> T | None:
    """Return what work comes to. One that fails is logged and None: it holds up no others of its batch."""
    try:
        return await work
    except OjsError as error:
        log.warning("what is due waits", kind=what, name=name, reason=error.message)
    except Exception:
        log.exception("what is due can't be handled and will come back", kind=what, name=name)
    return None


def one_by_one(
    messages: DueMessages,
    what: str,
    handle: Callable[[Due], Awaitable[Handled]],
    key: Callable[[Due], str] = lambda due: due.job_id,
) -> Callable[[list[Due]], Awaitable[None]]:
    """Return a handler of batches that asks `handle` about each message. Those of equal keys come one after the other, all
    others side by side.
    """

    async def in_turn(name: str, alike: list[Due]) -> None:
        done: list[Due] = []
        for due in alike:
            match await contained(what, name, handle(due)):
                case "done":
                    done.append(due)
                case Again(ms):
                    messages.later(due, ms)
                case "leave" | None:
                    pass
        if done:
            await messages.done(done)

    async def batch_handler(batch: list[Due]) -> None:
        groups: dict[str, list[Due]] = {}
        for due in batch:
            groups.setdefault(key(due), []).append(due)
        await asyncio.gather(*(in_turn(name, alike) for name, alike in groups.items()))

    return batch_handler


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
        timings: DueLoopTimings = DueLoopTimings(),
    ) -> None:
        self._timings = timings
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
        await within(self._timings.stop_s, self._idle)
        await stop_loop(self._task)

    async def _turn(self) -> None:
        self._idle.set()
        if self._stopping:
            return
        if self._held is not None and await self._held():
            await asyncio.sleep(self._timings.held_s)
            return
        batch = await self._messages.next()
        if not batch:
            return
        self._idle.clear()
        try:
            if self._held is not None and await self._held():
                for due in batch:
                    self._messages.later(due, self._timings.later_ms)
            else:
                await self._handle(batch)
        finally:
            self._messages.give_back(batch)
            self._idle.set()
