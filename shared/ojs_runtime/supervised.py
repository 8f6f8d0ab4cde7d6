"""A service's side of its link to the process that supervises it (`ojs-nats dev`).

The link is a socket pair, inherited as a file descriptor. The service writes one JSON line when it is ready; the end of the
stream tells it that the supervisor is gone, however that died, and that it has to stop.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import msgspec


class ReadyLine(msgspec.Struct, frozen=True):
    """What a service tells its supervisor once: `url` is its API's or its health endpoint's, None without either."""

    name: str
    pid: int
    url: str | None


class Supervisor:
    """The supervisor as a service sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_gone: Callable[[], None]) -> None:
        self._writer = writer
        self._watch = asyncio.create_task(self._watch_end(reader, on_gone), name="supervisor-watch")

    @classmethod
    async def attach(cls, descriptor: int, on_gone: Callable[[], None]) -> Supervisor:
        """Take over the inherited end of the pair; `on_gone` is called when the other end closes."""
        reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=descriptor))
        return cls(reader, writer, on_gone)

    def ready(self, line: ReadyLine) -> None:
        self._writer.write(msgspec.json.encode(line) + b"\n")

    async def detach(self) -> None:
        self._watch.cancel()
        self._writer.close()

    @staticmethod
    async def _watch_end(reader: asyncio.StreamReader, on_gone: Callable[[], None]) -> None:
        try:
            await reader.read()
        except ConnectionError:  # the other end died with unread bytes
            pass
        on_gone()
