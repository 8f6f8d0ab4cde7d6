"""Waking fetchers that wait: every token's arrival is republished on `ojs.wake.>`, and each wakes one of them.

A queue that somebody fetches from is listened to, for a while after it as well, so that its next fetch knows what
there is (`ReadySubjects`).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from ojs_engine.base.waiting import within
from ojs_engine.jetstream.connection import Reply
from ojs_engine.store.dispatch.ready_subjects import ReadySubjects, ReadyTimings
from ojs_engine.store.records.bucket import Bucket
from ojs_link.timings import Timings


class WakeupTimings(Timings, frozen=True, kw_only=True):
    """How long arrivals are listened to."""

    sure_s: float = 30.0
    """How long it is relied upon that each arrival is heard. Only a lost connection keeps one back, and that is noticed."""
    sure_on_a_cluster_s: float = 1.0
    """There a leader may die between a token and its republication."""
    linger_s: float = 10.0
    """A queue's subscription outlives its last fetch this long, since workers ask again at once."""
    ready: ReadyTimings = ReadyTimings()
    """What is known of its ready subjects."""


class Waiter:
    """One fetcher. `wait` may return for nothing; what there is to get is found out by looking."""

    __slots__ = ("_event", "by", "queues", "takes")

    def __init__(self, queues: Sequence[str], takes: Callable[[str], bool] | None = None) -> None:
        self.queues = queues
        self.takes = takes
        """From which ready subjects; None for all."""
        self.by: _Watched | None = None
        """The queue that woke it last, for one token; None if everybody was woken."""
        self._event = asyncio.Event()

    @property
    def woken(self) -> bool:
        return self._event.is_set()

    def wake(self, by: _Watched | None = None) -> None:
        self.by = by
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, timeout_s: float) -> None:
        await within(timeout_s, self._event)


class _Watched:
    """A queue that somebody fetches from, or did a moment ago."""

    __slots__ = ("connections", "names", "ready", "room", "stop", "waiters")

    def __init__(self, room: bytes, sure_s: float, timings: ReadyTimings) -> None:
        self.room = room
        """The subject of the word that the queue may have room again."""
        self.waiters: dict[Waiter, None] = {}
        """In the order in which they are woken next."""
        self.stop: Callable[[], Awaitable[None]] | None = None
        self.ready = ReadySubjects(sure_s, timings)
        self.names: dict[bytes, str | None] = {}
        """The ready subjects of what is heard; None for a message that is no token."""
        self.connections = 0
        """Which of the process's connections it was last listened to on, counted from 1."""


class Wakeups:
    """Who waits for which queue on this process, and what it has heard of each."""

    def __init__(self, bucket: Bucket, timings: WakeupTimings) -> None:
        self._timings = timings
        self._nats = bucket.nats
        """That on which pushes are answered: an arrival is heard before its push is."""
        self._config = bucket.config
        self._sure_s = timings.sure_s if bucket.config.replicas == 1 else timings.sure_on_a_cluster_s
        self._queues: dict[str, _Watched] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._idle: OrderedDict[str, float] = OrderedDict()
        """When (loop time) which queue that nobody waits for was last fetched from, the longest ago first."""
        self._closed = False

    async def join(self, queues: Sequence[str], takes: Callable[[str], bool] | None = None) -> Waiter:
        """Register before looking for work, so that nothing arrives between the look and the wait. `takes` says from
        which ready subjects the fetcher takes, if not from all.
        """
        waiter = Waiter(queues, takes)
        try:
            for queue in queues:
                watched = await self._watch(queue)
                watched.waiters[waiter] = None
                self._idle.pop(queue, None)
        except BaseException:
            await self.leave(waiter)
            raise
        if self._closed:
            waiter.wake()
        return waiter

    async def leave(self, waiter: Waiter) -> None:
        """A waiter that goes away unserved, or served by another queue than that which woke it, passes its wake on."""
        for queue in waiter.queues:
            watched = self._queues.get(queue)
            if watched is None:
                continue
            watched.waiters.pop(waiter, None)
            if not watched.waiters:
                self._linger(queue)
        by = waiter.by
        if by is not None and (waiter.woken or by.ready.giving(asyncio.get_running_loop().time())):
            self._wake_one(by)
        await self._forget_idle()

    async def listen(self, queues: Sequence[str]) -> None:
        """Hear what arrives in queues that are fetched from without waiting."""
        for queue in queues:
            watched = await self._watch(queue)
            if not watched.waiters:
                self._linger(queue)
        await self._forget_idle()

    def ready(self, queue: str) -> ReadySubjects | None:
        """What is known of a queue, if it is listened to just now."""
        watched = self._queues.get(queue)
        if watched is None or watched.stop is None or not self._nats.connected:
            return None
        if watched.connections != self._nats.connections:
            watched.connections = self._nats.connections
            watched.ready.forget()
        return watched.ready

    def empty(self, queues: Sequence[str]) -> bool:
        """Whether there surely is nothing in any of these queues until something arrives."""
        now = asyncio.get_running_loop().time()
        return all((ready := self.ready(queue)) is not None and ready.empty(now) for queue in queues)

    def wake_queue(self, queue: str) -> None:
        """A queue's tokens can be had again: everybody who waits for it looks."""
        watched = self._queues.get(queue)
        if watched is not None:
            watched.ready.let_go()
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
        while (watched := self._queues.get(queue)) is None or watched.stop is None:
            starting = self._starting.get(queue)
            if starting is None:
                room = self._config.wake_for_room(queue).encode()
                watched = self._queues.setdefault(queue, _Watched(room, self._sure_s, self._timings.ready))
                starting = asyncio.create_task(self._subscribe(queue, watched), name=f"wake-{queue}")
                self._starting[queue] = starting
            await asyncio.shield(starting)
        return watched

    async def _subscribe(self, queue: str, watched: _Watched) -> None:
        def heard(message: Reply) -> None:
            self._heard(watched, message.subject)

        try:
            watched.stop = await self._nats.listen(self._config.wake_of_queue(queue), heard)
        finally:
            self._starting.pop(queue, None)

    def _heard(self, watched: _Watched, name: bytes) -> None:
        try:
            subject = watched.names[name]
        except KeyError:
            subject = watched.names[name] = self._config.ready_of_wake(name.decode())
        if subject is not None:
            watched.ready.arrived(subject, asyncio.get_running_loop().time())
        elif name == watched.room:
            watched.ready.let_go()
        else:  # a place
            return
        self._wake_one(watched, subject)

    def _wake_one(self, watched: _Watched, subject: str | None = None) -> None:
        for waiter in watched.waiters:
            if not waiter.woken and (subject is None or waiter.takes is None or waiter.takes(subject)):
                break
        else:
            return
        del watched.waiters[waiter]
        watched.waiters[waiter] = None
        waiter.wake(watched)

    def _linger(self, queue: str) -> None:
        self._idle[queue] = asyncio.get_running_loop().time()
        self._idle.move_to_end(queue)

    async def _forget_idle(self) -> None:
        long_ago = asyncio.get_running_loop().time() - self._timings.linger_s
        while self._idle and next(iter(self._idle.values())) < long_ago:
            queue, _ = self._idle.popitem(last=False)
            if queue not in self._starting:  # whoever starts to listen waits for it, and leaves again
                watched = self._queues.pop(queue)
                if watched.stop is not None:
                    await watched.stop()
