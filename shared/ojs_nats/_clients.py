"""A client for each event loop, made when it is first asked for."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from ojs_nats._client import Client
from ojs_nats._durations import Duration


class Clients:
    """Connections can't be shared between loops, and a process may have many loops in its time."""

    def __init__(self, url: str, *, patience: Duration = 30.0) -> None:
        self._url = url
        self._patience = patience
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    def of(self, loop: asyncio.AbstractEventLoop) -> Client:
        """The one of that loop, which may be another thread's."""
        known = self._clients.get(loop)
        return known or self._clients.setdefault(loop, Client(self._url, patience=self._patience))

    async def close(self) -> None:
        """Close that of the loop that runs."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()
