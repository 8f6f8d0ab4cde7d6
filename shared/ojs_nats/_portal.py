"""Calls from code without an event loop: one loop in a thread of its own, for the whole process."""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import selectors
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from concurrent.futures import wait
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

_GOODBYE_S: Final = 2.0
_LOOK_UP_S: Final = 1.0
"""A signal that comes just before a wait begins doesn't end it: so often Python sees to its handlers."""


class _Portal(NamedTuple):
    loop: asyncio.AbstractEventLoop
    selector: selectors.BaseSelector
    thread: threading.Thread


_lock = threading.RLock()
"""It can be taken again by what breaks in on its holder: a signal's handler, or a `__del__`."""
_portal: _Portal | None = None
_inherited: list[_Portal] = []
"""The portals of the processes that this one was forked from. They are kept open until the end."""


def call(work: Coroutine[Any, Any, T]) -> T:
    """Return the coroutine's result; it runs in the process's own loop.

    Raises RuntimeError within that loop, which would wait for itself.
    """
    its = _opened()
    if its.thread.ident == threading.get_ident():  # gevent's threads have the running loop in common
        work.close()
        raise RuntimeError(
            "a call without await can't be made by what runs in the loop of such calls (middleware, a handler of logging): "
            "write await send_email.push(…), or call from a thread"
        )
    future = asyncio.run_coroutine_threadsafe(work, its.loop)
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
    """Return the process's own loop."""
    return _opened().loop


def _opened() -> _Portal:
    global _portal  # noqa: PLW0603
    with _lock:
        if _portal is None:
            selector = selectors.DefaultSelector()
            made = asyncio.SelectorEventLoop(selector)
            thread = threading.Thread(target=made.run_forever, name="ojs-nats-calls", daemon=True)
            thread.start()
            _portal = _portal or _Portal(made, selector, thread)  # what broke in may have made one
        return _portal


def _begin_anew() -> None:
    """Leave to the parent what is its own, in a child that was forked: its thread, its lock, its connections."""
    global _lock, _portal  # noqa: PLW0603
    _lock = threading.RLock()  # another thread of the parent may have held it
    inherited, _portal = _portal, None
    if inherited is None:
        return
    _inherited.append(inherited)
    inherited.loop.set_exception_handler(lambda _loop, _context: None)  # the parent closes what isn't closed here
    with suppress(OSError):
        _detach(inherited.selector)


def _detach(selector: selectors.BaseSelector) -> None:
    """Put other files in the place of a parent's connections.

    So closing them in this process sends nothing to their peers, as TLS would, and removes them from no epoll, which
    a child shares with its parent.
    """
    if hasattr(selectors, "EpollSelector") and isinstance(selector, selectors.EpollSelector):
        with select.epoll() as own:
            os.dup2(own.fileno(), selector.fileno(), inheritable=False)
    with socket.socket() as unconnected:
        for descriptor in [key.fd for key in (selector.get_map() or {}).values()]:
            os.dup2(unconnected.fileno(), descriptor, inheritable=False)


def _close() -> None:
    """Close connections, which clients keep in generators of the loop, before the process ends."""
    if _portal is not None:
        closed = asyncio.run_coroutine_threadsafe(_portal.loop.shutdown_asyncgens(), _portal.loop)
        closed.exception(_GOODBYE_S)


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
