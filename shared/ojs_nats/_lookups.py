"""Lookups of host names in threads of their own: a program may have taken all those of an event loop's default pool."""

from __future__ import annotations

import asyncio
import functools
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

_THREADS: Final = 4


class Lookups:
    """Threads that look up host names, until `close`. A loop's methods of the same names are in the way of its default pool."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "ojs-nats-lookup")

    def close(self) -> None:
        """Let go of the threads, which end with their lookups."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def getaddrinfo(self, host: Any, port: Any, **how: Any) -> Any:
        """Look up addresses, as `loop.getaddrinfo` does."""
        return await self._called(functools.partial(socket.getaddrinfo, host, port, **how))

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> Any:
        """Look up a name, as `loop.getnameinfo` does."""
        return await self._called(functools.partial(socket.getnameinfo, sockaddr, flags))

    async def _called(self, lookup: functools.partial[Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lookup)


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose lookups have threads of their own, whoever connects: also for clients of NATS."""

    def __init__(self) -> None:
        super().__init__()
        self._lookups = Lookups()

    async def getaddrinfo(self, *args: Any, **how: Any) -> Any:
        return await self._lookups.getaddrinfo(*args, **how)

    def close(self) -> None:
        self._lookups.close()
        super().close()
