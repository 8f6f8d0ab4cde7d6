"""A lean HTTP/1.1 client: keep-alive connections, one request at a time on each, no task and no object per request.

A load generator must cost less than what it measures. So a request is bytes that were built beforehand, a response is
its status and its body, and a connection is a state machine whose hooks are called as the answers arrive.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

_MAX_HEAD: Final = 65_536
_LENGTH: Final = b"\r\nContent-Length: "
_RECONNECT_PAUSE_S: Final = 0.1
_BODYLESS: Final = frozenset({204, 304})


class ProtocolError(Exception):
    """The peer sent something that this client doesn't understand as an HTTP/1.1 response."""


class Target(NamedTuple):
    """Where the server listens."""

    host: str
    port: int

    @classmethod
    def from_url(cls, url: str) -> Target:
        """Raises ValueError for anything but a plain `http://host[:port]`."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url!r} is not of the form http://host:port")
        if parts.path.strip("/"):
            raise ValueError(f"{url!r} has a path; give the server's root")
        return cls(parts.hostname, parts.port or 80)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_head(head: bytes) -> tuple[int, int]:
    """(status, length of the body) of a response head without its closing empty line.

    Raises ProtocolError for what isn't HTTP/1.x or has a body of unannounced length.
    """
    if not head.startswith(b"HTTP/1."):
        raise ProtocolError(f"not an HTTP/1.x response: {head[:40]!r}")
    status = head[9:12]
    if not status.isdigit():
        raise ProtocolError(f"not a status line: {head[:40]!r}")
    at = head.find(_LENGTH)
    if at < 0:
        at = head.lower().find(b"\r\ncontent-length:")
    if at < 0:
        if int(status) in _BODYLESS:
            return int(status), 0
        raise ProtocolError("the response has no Content-Length (chunked responses aren't read here)")
    start = head.index(b":", at) + 1
    end = head.find(b"\r\n", start)
    value = (head[start:end] if end >= 0 else head[start:]).strip()
    if not value.isdigit():
        raise ProtocolError(f"not a Content-Length: {value[:20]!r}")
    return int(status), int(value)


class ResponseReader:
    """Puts responses together from whatever pieces the socket delivers, one response at a time."""

    __slots__ = ("_body", "_end", "_held", "_status")

    def __init__(self) -> None:
        self._held = b""
        self._status = 0
        self._body = 0
        self._end = 0

    def feed(self, data: bytes) -> tuple[int, bytes] | None:
        """(status, body) once the response is complete, else None. Raises ProtocolError."""
        if self._held:
            data = self._held + data
        if not self._end:
            head = data.find(b"\r\n\r\n")
            if head < 0:
                if len(data) > _MAX_HEAD:
                    raise ProtocolError("the response head doesn't end")
                self._held = data
                return None
            self._status, length = read_head(data[:head])
            self._body = head + 4
            self._end = self._body + length
        if len(data) < self._end:
            self._held = data
            return None
        if len(data) > self._end:
            raise ProtocolError("more bytes came than the response announced")
        body = data[self._body :]
        self.clear()
        return self._status, body

    def clear(self) -> None:
        """Forget an unfinished response."""
        self._held = b""
        self._end = 0


class Connection(asyncio.Protocol):
    """One keep-alive connection. Subclasses say what to send; a lost connection is made again until `close`."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.busy = False
        self.loop = asyncio.get_running_loop()
        self._reader = ResponseReader()
        self._transport: asyncio.Transport | None = None
        self._closed = False
        self._reconnecting: asyncio.Task[None] | None = None

    # Hooks

    def answered(self, status: int, body: bytes) -> None:
        """The response to the last `send`."""
        raise NotImplementedError

    def failed(self, reason: str) -> None:
        """The last `send` gets no response, or the connection can't be made again yet."""
        raise NotImplementedError

    def reconnected(self) -> None:
        """The connection was lost and stands again."""

    # Actions

    @property
    def connected(self) -> bool:
        return self._transport is not None and not self._closed

    async def open(self) -> None:
        """Connect. Raises OSError."""
        await self.loop.create_connection(lambda: self, self.target.host, self.target.port)

    def send(self, request: bytes) -> None:
        """Write a whole request. Only when the connection stands and isn't `busy`."""
        assert self._transport is not None
        self.busy = True
        self._transport.write(request)

    def close(self) -> None:
        """Drop the connection for good; no hook is called afterwards."""
        self._closed = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            response = self._reader.feed(data)
        except ProtocolError as error:
            self._give_up(str(error))
            return
        if response is not None:
            self.busy = False
            self.answered(*response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._give_up(f"connection lost ({exc})" if exc else "connection lost")

    def _give_up(self, reason: str) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        self._reader.clear()
        if self._closed or self._reconnecting is not None:
            return
        was_busy, self.busy = self.busy, False
        self._reconnecting = self.loop.create_task(self._reconnect())
        if was_busy:
            self.failed(reason)

    async def _reconnect(self) -> None:
        refused = False
        while self._transport is None:
            await asyncio.sleep(_RECONNECT_PAUSE_S)
            try:
                await self.open()
            except OSError:
                if not refused:  # once for each time it was lost, however long that lasts
                    self.failed("can't connect again")
                refused = True
        self._reconnecting = None
        self.reconnected()


class Asker(Connection):
    """A connection whose answers are awaited, one request after the other."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._answer: asyncio.Future[tuple[int, bytes]] = self.loop.create_future()

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Return the status and the body of the answer. Raises ConnectionError."""
        self._answer = self.loop.create_future()
        self.send(request)
        return await self._answer

    def answered(self, status: int, body: bytes) -> None:
        if not self._answer.done():
            self._answer.set_result((status, body))

    def failed(self, reason: str) -> None:
        if not self._answer.done():
            self._answer.set_exception(ConnectionError(reason))


async def exchange(target: Target, request: bytes, *, timeout_s: float) -> tuple[int, bytes]:
    """Send one request on a connection of its own. Raises OSError or TimeoutError."""
    connection = Asker(target)
    try:
        async with asyncio.timeout(timeout_s):
            await connection.open()
            return await connection.ask(request)
    finally:
        connection.close()
