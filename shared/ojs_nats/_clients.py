"""A client for each event loop, made when it is first asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from ojs_nats._loops import running_loop
from ojs_nats.client import Client


class Clients:
    """Connections can't be shared between loops, and a process may have many loops in its time."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()
        self._left: list[Client] = []
        """Clients that aren't used any more, until their loops close what is open."""

    def of(self, loop: asyncio.AbstractEventLoop) -> Client:
        """The one of that loop, which may be another thread's."""
        known = self._clients.get(loop)
        return known or self._clients.setdefault(loop, self._make())

    @contextmanager
    def others(self) -> Iterator[None]:
        """New ones meanwhile; then those of before again."""
        kept, self._clients = self._clients, WeakKeyDictionary()
        try:
            yield
        finally:
            self._left = [client for client in (*self._left, *self._clients.values()) if client._inside.transport.is_open]
            self._clients = kept

    async def close(self) -> None:
        """Close that of the loop that runs."""
        client = self._clients.pop(running_loop(), None)
        if client is not None:
            await client.close()
