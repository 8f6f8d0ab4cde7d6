"""Signs of life from a thread of their own, so that a handler that blocks the event loop isn't taken for a dead
worker.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Final, Generic, TypeVar

import msgspec

from ojs_api.work import HEARTBEAT
from ojs_link.lasting import Lasting
from ojs_nats._logging import get_logger
from ojs_nats._operations import Request
from ojs_nats._transport import Transport
from ojs_nats.errors import OjsError
from ojs_nats.worker._marks import Complete
from ojs_nats.worker._timings import WorkerTimings

log = get_logger("ojs_nats.worker.heartbeats")

_PORTION: Final = 1_000
"""The most jobs that the server lets a heartbeat name."""


T = TypeVar("T")


class Beat(msgspec.Struct, Generic[T], frozen=True):
    """The server's answer: what the worker is to be, if that differs from what it said it was, and which of the
    attempts that were named aren't its own any more.
    """

    directive: str | None
    lost: list[T]
    cancelled: list[T]


class Signs(msgspec.Struct, Generic[T], frozen=True):
    """The contents of a heartbeat: the worker's state, members of the request, attempts by their job's id, and `complete`,
    the marks between which the attempts are all that the worker was given. The next one follows in `again_s`
    seconds.
    """

    state: str
    members: dict[str, Any]
    attempts: Mapping[str, T]
    complete: Complete | None
    again_s: float
    queue: str | None = None
    """The one queue that the worker works on; None for several."""


class _Answer(msgspec.Struct):
    state: str
    jobs_extended: list[str]
    cancelled_jobs: list[str] = []
    mark: str | None = None


class Heartbeats(Generic[T]):
    """The heartbeats of one worker. `connect` makes a connection of their own, `describe` says in their thread what
    to send. `marked` is called there with the mark of each answer, `heard` in the loop that started them.
    `beside` is entered in the thread's loop, and left with it. Whatever an answer holds, the next heartbeat
    follows, until `end`, or the loop that started them is closed.
    """

    def __init__(
        self,
        connect: Callable[[], Transport],
        describe: Callable[[], Signs[T]],
        heard: Callable[[Beat[T]], None],
        marked: Callable[[str], None],
        beside: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
        timings: WorkerTimings = WorkerTimings(),
    ) -> None:
        self._timings = timings
        self._connect = connect
        self._describe = describe
        self._heard = heard
        self._marked = marked
        self._loop = asyncio.get_running_loop()
        self._beside = beside
        self._let_in = self._answered = time.monotonic()
        self._told = False
        self._trouble = Lasting()
        """Why heartbeats fail, as long as they do."""
        self._told_to_end = False
        self._every_s = 0.0
        self._next = 0.0
        self._own: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._soon: asyncio.Event | None = None
        self._ready = threading.Event()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run_thread, name="ojs-nats-heartbeats", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    @property
    def loop_turns(self) -> bool:
        """Whether the loop that started them was let in lately."""
        return time.monotonic() - self._let_in <= self._every_s + self._timings.stuck_s

    @property
    def silent_s(self) -> float:
        """How many seconds ago the server answered."""
        return time.monotonic() - self._answered

    def now(self) -> None:
        """Beat at once: something has changed that the server should know."""
        if self._soon is not None:
            self._call(self._soon.set)

    def within(self, seconds: float) -> None:
        """Beat at once if the next one would come later than that."""
        if time.monotonic() + seconds < self._next:
            self._next = 0.0
            self.now()

    def end(self) -> None:
        """Beat no more."""
        if self._task is not None and not self._told_to_end:
            self._told_to_end = True
            self.now()  # a cancellation may be swallowed, as by `asyncio.wait_for`
            self._call(self._cancel_soon)

    def _cancel_soon(self) -> None:
        """Let the server answer a heartbeat under way: it would take one that it reads later for a worker that is back."""
        assert self._own is not None
        assert self._task is not None
        self._own.call_later(self._timings.beat_last_s, self._task.cancel)

    async def stop(self) -> None:
        """Beat no more, and wait until the thread has closed its connection."""
        self.end()
        if self._task is not None:
            await self._ended.wait()

    def _call(self, what: Callable[[], object]) -> None:
        assert self._own is not None
        with suppress(RuntimeError):  # it has stopped
            self._own.call_soon_threadsafe(what)

    def _run_thread(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                asyncio.run(self._run())
        finally:
            self._ready.set()
            with suppress(RuntimeError):  # the worker's loop has been closed without a stop
                self._loop.call_soon_threadsafe(self._ended.set)

    async def _run(self) -> None:
        self._own, self._task, self._soon = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
        self._ready.set()
        link = self._connect()
        try:
            async with self._beside():
                while not (self._told_to_end or self._loop.is_closed()):
                    self._soon.clear()
                    again_s = await self._beat(link)
                    self._next = time.monotonic() + again_s
                    with suppress(TimeoutError):
                        async with asyncio.timeout(again_s):
                            await self._soon.wait()
        finally:
            await link.close()

    async def _beat(self, link: Transport) -> float:
        """Send one, and return in how many seconds the next one follows."""
        again_s = self._timings.beat_again_s
        try:
            signs = self._describe()
            self._every_s = again_s = signs.again_s
            self._look_after_the_loop()
            ids = list(signs.attempts)
            for start in range(0, max(len(ids), 1), _PORTION):
                await self._send(link, signs, ids[start : start + _PORTION])
        except OjsError as error:
            self._say_failed("a heartbeat wasn't answered", str(error))
        except Exception as error:  # noqa: BLE001  # without heartbeats the server would take the worker for dead
            self._say_failed("a heartbeat failed", str(error), error=type(error).__name__)
        else:
            if (seconds := self._trouble.over()) is not None:
                log.info("heartbeats are answered again", after_seconds=round(seconds, 1))
        return again_s

    def _say_failed(self, event: str, reason: str, **members: str) -> None:
        if (seconds := self._trouble.noted(reason)) is not None:
            log.warning(event, reason=reason, seconds=round(seconds), **members)

    async def _send(self, link: Transport, signs: Signs[T], ids: Sequence[str]) -> None:
        named = {job_id: signs.attempts[job_id] for job_id in ids}
        body = {**signs.members, "state": signs.state, "active_jobs": len(signs.attempts), "active_job_ids": ids}
        if signs.complete is not None and len(named) == len(signs.attempts):
            body["complete"] = signs.complete
        answer = await link.send(Request(HEARTBEAT, body=body, queue=signs.queue, answer_s=max(signs.again_s, 1.0)))
        said = msgspec.json.decode(answer, type=_Answer)
        self._answered = time.monotonic()
        if said.mark is not None:
            self._marked(said.mark)
        kept, cancelled = frozenset(said.jobs_extended), frozenset(said.cancelled_jobs)
        beat = Beat(
            said.state if said.state != signs.state else None,
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
