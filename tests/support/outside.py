"""What a store stands on, in the hands of a test: its clock, and the way to NATS and back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from ojs_engine.domain.transitions.deadlines import WorkerTimes
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import (
    Collected,
    Connection,
    ConnectionTimings,
    Failed,
    Reply,
    ReplyOrFailure,
)
from ojs_engine.store.store import Store

Send = Callable[[str, bytes, str, float], Awaitable[ReplyOrFailure]]
"""Subject, payload, headers, and how long the answer is waited for."""
Tap = Callable[[Send, str, bytes, str, float], Awaitable[ReplyOrFailure] | None]
"""Meets a request on its way: returns what its sender gets, or None to let it pass."""
Happen = Callable[[], Awaitable[Any]]
Wanted = Callable[[str, bytes], bool]
"""Whether a request is meant, by its subject and payload."""
Collect = Callable[[str, bytes, int, float], Awaitable[Collected | Failed]]
CollectTap = Callable[[Collect, str, bytes, int, float], Awaitable[Collected | Failed]]


EMPTY: Final = Collected([], Reply(b"", b"", b"", b"NATS/1.0 404 No Messages\r\n\r\n"))
"""NATS's answer to who asks for messages where there are none."""


class SteeredClock(ServerClock):
    """Server time, and `ahead_ms` more: by so much a process seems to have slept. It may be made to stand still."""

    def __init__(self, workers: WorkerTimes = WorkerTimes()) -> None:
        super().__init__(workers=workers)
        self.ahead_ms = 0
        self._stands_at: int | None = None

    def now(self) -> int:
        return (super().now() if self._stands_at is None else self._stands_at) + self.ahead_ms

    def stand(self) -> None:
        """From now on only `ahead_ms` moves it."""
        self._stands_at = super().now()

    def go(self) -> None:
        """Tell server time again."""
        self._stands_at, self.ahead_ms = None, 0


class TappedConnection(Connection):
    """A connection whose requests pass through `taps`, the last first; those with many answers through `collect_taps`."""

    def __init__(self, name: str, timings: ConnectionTimings) -> None:
        super().__init__(name, timings)
        self.taps: list[Tap] = []
        self.collect_taps: list[CollectTap] = []
        self.drops: set[str] = set()
        """Beginnings of subjects; what is published there is lost on the way."""
        self.deaf = False
        """Whether what it listens to doesn't reach it."""
        self.socket_closed = False
        """Whether the next write meets a socket that is closed, of which nobody has heard yet."""

    def clear(self) -> None:
        """Let everything pass again."""
        self.taps.clear()
        self.collect_taps.clear()
        self.drops.clear()
        self.deaf = self.socket_closed = False

    def request(
        self, subject: str, payload: bytes = b"", headers: str = "", timeout_s: float | None = None
    ) -> asyncio.Future[ReplyOrFailure]:
        wait_s = self.timings.request_s if timeout_s is None else timeout_s
        return self._pass(len(self.taps), subject, payload, headers, wait_s)

    def _pass(self, taps: int, subject: str, payload: bytes, headers: str, timeout_s: float) -> asyncio.Future[ReplyOrFailure]:
        for number in range(min(taps, len(self.taps)) - 1, -1, -1):

            def send(subject: str, payload: bytes, headers: str, timeout_s: float, number: int = number) -> Any:
                return self._pass(number, subject, payload, headers, timeout_s)

            answer = self.taps[number](send, subject, payload, headers, timeout_s)
            if answer is not None:
                return asyncio.ensure_future(answer)
        return super().request(subject, payload, headers, timeout_s)

    async def collect(self, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        if not self.collect_taps:
            return await super().collect(subject, payload, wanted, timeout_s)
        return await self.collect_taps[-1](super().collect, subject, payload, wanted, timeout_s)

    def publish(self, subject: str, payload: bytes, headers: str = "", reply: str = "", *, along: bool = False) -> None:
        if not subject.startswith(tuple(self.drops)):
            super().publish(subject, payload, headers, reply, along=along)

    def _send(self, frames: list[bytes]) -> None:
        if self.socket_closed:
            self.socket_closed = False  # the next socket is another one
            raise RuntimeError("unable to perform operation; the handler is closed")
        super()._send(frames)

    async def listen(self, subject: str, handler: Callable[[Reply], None], *, group: str = "") -> Callable[[], Awaitable[None]]:
        def hear(message: Reply) -> None:
            if not self.deaf:
                handler(message)

        return await super().listen(subject, hear, group=group)


def tapped_connection(nats: Connection) -> TappedConnection:
    """The connection of a store that a test has opened."""
    assert isinstance(nats, TappedConnection), "it isn't one of a test's store"
    return nats


@contextmanager
def tapped(nats: Connection, tap: Tap) -> Iterator[None]:
    """Have requests pass through a tap while the block runs."""
    taps = tapped_connection(nats).taps
    taps.append(tap)
    try:
        yield
    finally:
        taps.remove(tap)


@contextmanager
def collecting(nats: Connection, tap: CollectTap) -> Iterator[None]:
    """Have requests with many answers pass through a tap while the block runs."""
    taps = tapped_connection(nats).collect_taps
    taps.append(tap)
    try:
        yield
    finally:
        taps.remove(tap)


def reads_of(subject: str) -> Wanted:
    """Requests for what a subject holds."""
    return lambda asked, payload: asked.startswith("$JS.API.") and (subject in asked or f'"{subject}"'.encode() in payload)


def _is_wanted(wanted: str | Wanted, subject: str, payload: bytes) -> bool:
    return subject.startswith(wanted) if isinstance(wanted, str) else wanted(subject, payload)


@contextmanager
def before(nats: Connection, wanted: str | Wanted, happen: Happen, *, times: int = 1) -> Iterator[list[str]]:
    """Have something happen before each of the next requests to subjects with this beginning is sent; yields those subjects."""
    met: list[str] = []

    async def late(send: Send, subject: str, payload: bytes, headers: str, timeout_s: float) -> ReplyOrFailure:
        await happen()
        return await send(subject, payload, headers, timeout_s)

    def tap(send: Send, subject: str, payload: bytes, headers: str, timeout_s: float) -> Awaitable[ReplyOrFailure] | None:
        if len(met) >= times or not _is_wanted(wanted, subject, payload):
            return None
        met.append(subject)
        return late(send, subject, payload, headers, timeout_s)

    with tapped(nats, tap):
        yield met


@contextmanager
def after(nats: Connection, wanted: str | Wanted, happen: Happen, *, times: int = 1) -> Iterator[list[str]]:
    """Have something happen after each of the next requests to subjects with this beginning, before its answer is heard."""
    met: list[str] = []

    async def first(answer: Awaitable[ReplyOrFailure]) -> ReplyOrFailure:
        found = await answer
        await happen()
        return found

    def tap(send: Send, subject: str, payload: bytes, headers: str, timeout_s: float) -> Awaitable[ReplyOrFailure] | None:
        if len(met) >= times or not _is_wanted(wanted, subject, payload):
            return None
        met.append(subject)
        return first(send(subject, payload, headers, timeout_s))

    with tapped(nats, tap):
        yield met


def clock_of(store: Store) -> SteeredClock:
    """The clock of a store that a test has opened."""
    assert isinstance(store.clock, SteeredClock), "it isn't that of a test's store"
    return store.clock


@contextmanager
def ahead(store: Store, ms: int) -> Iterator[None]:
    """Have a process's clock go ahead while the block runs, as if it had slept."""
    clock = clock_of(store)
    clock.ahead_ms += ms
    try:
        yield
    finally:
        clock.ahead_ms -= ms


@contextmanager
def standing(store: Store) -> Iterator[None]:
    """Have a process's clock stand still while the block runs, so that what it stores is stored in time."""
    clock = clock_of(store)
    clock.stand()
    try:
        yield
    finally:
        clock.go()


def untouched(store: Store) -> None:
    """Set a store back to how it was opened, for the next test: its clock, and its ways to NATS."""
    clock_of(store).go()
    for nats in (store.nats, store.bulk):
        tapped_connection(nats).clear()
