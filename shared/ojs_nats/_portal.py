"""Calls from code without an event loop: one loop in a thread of its own, for the whole process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from concurrent.futures import wait
from typing import Any, Final, TypeVar

T = TypeVar("T")

_GOODBYE_S: Final = 2.0
_LOOK_UP_S: Final = 1.0
"""A signal that comes just before a wait begins doesn't end it: so often Python sees to its handlers."""

_lock = threading.Lock()
_portal: tuple[int, asyncio.AbstractEventLoop] | None = None


def call(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; it runs in the process's own loop. Not to be called by what runs in that loop."""
    future = asyncio.run_coroutine_threadsafe(work, loop())
    try:
        while True:
            wait({future}, _LOOK_UP_S)
            if future.done():
                return future.result()
    except BaseException:
        future.cancel()  # after Ctrl-C nobody waits for it
        raise


def each(items: AsyncIterator[T]) -> Iterator[T]:
    """The items, one after the other; the next one is made when it is asked for."""
    try:
        while (found := call(_next(items))) is not None:
            yield found[0]
    finally:
        if isinstance(items, AsyncGenerator):
            call(items.aclose())


async def _next(items: AsyncIterator[T]) -> tuple[T] | None:
    async for item in items:
        return (item,)
    return None


def loop() -> asyncio.AbstractEventLoop:
    """The process's own loop."""
    global _portal  # noqa: PLW0603
    with _lock:
        if _portal is None or _portal[0] != os.getpid():  # a fork has the lock's memory, but not the thread
            made = asyncio.new_event_loop()
            threading.Thread(target=made.run_forever, name="ojs-nats-calls", daemon=True).start()
            _portal = (os.getpid(), made)
        return _portal[1]


def _close() -> None:
    """Close connections, which clients keep in generators of the loop, before the process ends."""
    if _portal is not None and _portal[0] == os.getpid():
        closed = asyncio.run_coroutine_threadsafe(_portal[1].shutdown_asyncgens(), _portal[1])
        closed.exception(_GOODBYE_S)


atexit.register(_close)
