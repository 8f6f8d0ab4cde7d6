"""Calls from code without an event loop: one loop in a thread of its own, for the whole process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_GOODBYE_S: Final = 2.0

_lock = threading.Lock()
_portal: tuple[int, asyncio.AbstractEventLoop] | None = None


def call(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; it runs in the process's own loop. Not to be called by what runs in that loop."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


def _loop() -> asyncio.AbstractEventLoop:
    global _portal  # noqa: PLW0603
    with _lock:
        if _portal is None or _portal[0] != os.getpid():  # a fork has the lock's memory, but not the thread
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="ojs-nats-calls", daemon=True).start()
            _portal = (os.getpid(), loop)
        return _portal[1]


def _close() -> None:
    """Close connections, which clients keep in generators of the loop, before the process ends."""
    if _portal is not None and _portal[0] == os.getpid():
        closed = asyncio.run_coroutine_threadsafe(_portal[1].shutdown_asyncgens(), _portal[1])
        closed.exception(_GOODBYE_S)


atexit.register(_close)
