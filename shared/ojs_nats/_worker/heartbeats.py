"""Signs of life from a thread of their own, so that a handler that blocks the event loop isn't taken for a dead worker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, Generic, TypeVar

import msgspec

from ojs_nats._errors import OjsError
from ojs_nats._logging import get_logger
from ojs_nats._operations import HEARTBEAT, Request
from ojs_nats._transport import Transport

log = get_logger(__name__)

_STUCK_S: Final = 5.0
"""A loop that hasn't been let in for so long is told of."""


T = TypeVar("T")


class Beat(msgspec.Struct, Generic[T], frozen=True):
    """The server's answer: what the worker should be, and which of the attempts that were named aren't its own any more."""

    state: str
    lost: list[T]
    cancelled: list[T]


class Signs(msgspec.Struct, Generic[T], frozen=True):
    """What to tell: members of the request, attempts by their job's id, and in how many seconds to tell again."""

    members: dict[str, Any]
    attempts: Mapping[str, T]
    again_s: float


class _Answer(msgspec.Struct):
    state: str = "running"
    jobs_extended: list[str] = []
    cancelled_jobs: list[str] = []


class Heartbeats(Generic[T]):
    """`connect` makes a connection of their own. `describe` is asked in the thread what to send, `heard` is called in the loop
    that started it. `beside` is entered in the thread's loop, and left with it.
    """

    def __init__(
        self,
        connect: Callable[[], Transport],
        describe: Callable[[], Signs[T]],
        heard: Callable[[Beat[T]], None],
        beside: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
    ) -> None:
        self._connect = connect
        self._describe = describe
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._beside = beside
        self._let_in = self._answered = time.monotonic()
        self._told = False
        self._every_s = 0.0
        self._next = 0.0
        self._own: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._soon: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="ojs-nats-heartbeats", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    @property
    def loop_turns(self) -> bool:
        """Whether the loop that started it was let in lately."""
        return time.monotonic() - self._let_in <= self._every_s + _STUCK_S

    @property
    def silent_s(self) -> float:
        """How long ago the server has answered."""
        return time.monotonic() - self._answered

    def now(self) -> None:
        """Beat at once: something has changed that the server should know."""
        self._tell(self._soon)

    def within(self, seconds: float) -> None:
        """Beat at once if the next one would come later than that."""
        if time.monotonic() + seconds < self._next:
            self._next = 0.0
            self._tell(self._soon)

    async def stop(self) -> None:
        self._tell(self._stop)
        await asyncio.to_thread(self._thread.join)

    def _tell(self, event: asyncio.Event | None) -> None:
        assert self._own is not None
        assert event is not None
        try:
            self._own.call_soon_threadsafe(event.set)
        except RuntimeError:  # it has stopped
            log.debug("heartbeats have stopped")

    async def _run(self) -> None:
        self._own, self._stop, self._soon = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._ready.set()
        link = self._connect()
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            async with self._beside():
                while not self._stop.is_set():
                    self._soon.clear()
                    signs = self._describe()
                    self._every_s = signs.again_s
                    self._look_after_the_loop()
                    await self._beat(link, signs)
                    self._next = time.monotonic() + signs.again_s
                    soon = asyncio.ensure_future(self._soon.wait())
                    await asyncio.wait({stopped, soon}, timeout=signs.again_s, return_when=asyncio.FIRST_COMPLETED)
                    soon.cancel()
        finally:
            stopped.cancel()
            await link.close()

    async def _beat(self, link: Transport, signs: Signs[T]) -> None:
        named = signs.attempts
        body = {**signs.members, "active_jobs": len(named), "active_job_ids": list(named)}
        try:
            answer = await link.send(Request(HEARTBEAT, body=body, answer_s=max(signs.again_s, 1.0)))
        except OjsError as error:
            log.warning("a heartbeat wasn't answered", reason=str(error))
            return
        self._answered = time.monotonic()
        said = msgspec.json.decode(answer, type=_Answer)
        kept, cancelled = frozenset(said.jobs_extended), frozenset(said.cancelled_jobs)
        beat = Beat(
            said.state,
            lost=[attempt for job_id, attempt in named.items() if job_id not in kept and job_id not in cancelled],
            cancelled=[attempt for job_id, attempt in named.items() if job_id in cancelled],
        )
        self._loop.call_soon_threadsafe(self._heard, beat)

    def _look_after_the_loop(self) -> None:
        if not (self.loop_turns or self._told):
            self._told = True
            away = round(time.monotonic() - self._let_in, 1)
            log.warning("the event loop is blocked: a handler calls what should run in a thread", seconds=away)
        self._loop.call_soon_threadsafe(self._mark)

    def _mark(self) -> None:
        self._let_in = time.monotonic()
        self._told = False
