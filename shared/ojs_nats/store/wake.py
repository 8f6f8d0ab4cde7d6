"""Waking fetchers that wait: every token's arrival is republished on `ojs.wake.>`, and each wakes one of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig

__all__ = ["Waiter", "Wakes"]

LINGER_S: Final = 10.0
"""A queue's subscription outlives its last waiter this long, since workers ask again at once."""


class Waiter:
    """One fetcher. `wait` may return for nothing; what there is to get is found out by looking."""

    __slots__ = ("_event", "queues")

    def __init__(self, queues: Sequence[str]) -> None:
        self.queues = queues
        self._event = asyncio.Event()

    @property
    def woken(self) -> bool:
        return self._event.is_set()

    def wake(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            pass


class _Watched:
    """A queue that somebody waits for, or did a moment ago."""

    __slots__ = ("idle_since", "stop", "waiters")

    def __init__(self) -> None:
        self.waiters: deque[Waiter] = deque()
        self.stop: Callable[[], Awaitable[None]] | None = None
        self.idle_since = 0.0


class Wakes:
    """Who waits for which queue on this process."""

    def __init__(self, link: Link, config: StoreConfig) -> None:
        self._link = link
        self._config = config
        self._queues: dict[str, _Watched] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def join(self, queues: Sequence[str]) -> Waiter:
        """Register before looking for work, so that nothing arrives between the look and the wait."""
        waiter = Waiter(queues)
        try:
            for queue in queues:
                watched = self._queues.get(queue)
                if watched is None or watched.stop is None:
                    watched = await self._watch(queue)
                watched.waiters.append(waiter)
        except BaseException:
            await self.leave(waiter)
            raise
        if self._closed:
            waiter.wake()
        return waiter

    async def leave(self, waiter: Waiter) -> None:
        """A waiter that goes away unserved passes its wake on."""
        for queue in waiter.queues:
            watched = self._queues.get(queue)
            if watched is None:
                continue
            if waiter in watched.waiters:
                watched.waiters.remove(waiter)
            if waiter.woken:
                self._wake_one(watched)
            watched.idle_since = asyncio.get_running_loop().time()
        await self._forget_idle()

    def wake_queue(self, queue: str) -> None:
        """A queue's tokens can be had again: everybody who waits for it looks."""
        watched = self._queues.get(queue)
        if watched is not None:
            for waiter in watched.waiters:
                waiter.wake()

    def wake_later(self, queue: str, seconds: float) -> None:
        """The same when a while is over, if anybody waits then."""
        if seconds > 0 and queue in self._queues:
            asyncio.get_running_loop().call_later(seconds, self.wake_queue, queue)

    def wake_all(self) -> None:
        """For shutdown: nobody waits any longer, now or later."""
        self._closed = True
        for watched in self._queues.values():
            for waiter in watched.waiters:
                waiter.wake()

    @property
    def closed(self) -> bool:
        return self._closed

    async def _watch(self, queue: str) -> _Watched:
        watched = self._queues.setdefault(queue, _Watched())
        starting = self._starting.get(queue)
        if starting is None:
            starting = asyncio.create_task(self._subscribe(queue, watched), name=f"wake-{queue}")
            self._starting[queue] = starting
        await asyncio.shield(starting)
        return watched

    async def _subscribe(self, queue: str, watched: _Watched) -> None:
        try:
            watched.stop = await self._link.listen(self._config.wake_of_queue(queue), lambda _message: self._wake_one(watched))
        finally:
            self._starting.pop(queue, None)

    def _wake_one(self, watched: _Watched) -> None:
        for _ in range(len(watched.waiters)):
            waiter = watched.waiters[0]
            watched.waiters.rotate(-1)
            if not waiter.woken:
                waiter.wake()
                return

    async def _forget_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        for queue, watched in list(self._queues.items()):
            if not watched.waiters and watched.stop is not None and now - watched.idle_since > LINGER_S:
                del self._queues[queue]
                await watched.stop()
