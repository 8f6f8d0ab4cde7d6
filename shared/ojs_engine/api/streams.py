"""Answers that go on: server-sent events, and a conversation over a WebSocket. A gateway sends them over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, NamedTuple, Protocol

KEEP_ALIVE: Final = b":heartbeat\n\n"
"""A comment, for proxies that close what is silent (ojs-realtime §2.4)."""
SHUTDOWN: Final = "server.shutdown"
SHUTDOWN_DATA: Final = b'{"reason":"shutdown","grace_period_ms":0}'
"""The last event of every stream and socket when its gateway stops (ojs-realtime §4.6): the connection ends with it."""


def frame(event_type: str, data: bytes, number: str | None = None) -> bytes:
    """Return one event as it is sent; `number` is the id that a client sends when it connects again."""
    head = b"" if number is None else b"id: %s\n" % number.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (head, event_type.encode(), data)


def nothing() -> None:
    """Close nothing."""


class EventStream(NamedTuple):
    """Server-sent events: the `frames`, until there are no more, the client leaves or the gateway stops.

    A gateway that stops cuts off the wait for the next frame, and sends the last event itself.
    """

    frames: AsyncGenerator[bytes]
    close: Callable[[], None] = nothing
    """Called at the end, also if no frame was ever asked for."""
    begins_behind: int | None = None
    """The cursor of the last event before the stream: a client whose connection breaks before its first event goes on there."""


class Socket(Protocol):
    """The gateway's end of a WebSocket."""

    @property
    def ends(self) -> bool:
        """Whether the gateway stops, and the client is there to be told."""

    async def receive(self) -> str | None:
        """Return the next message, "" for one that isn't text; None once the client has left or the gateway stops."""

    async def send(self, message: bytes) -> None:
        """Send JSON as a text. Raises ConnectionError."""


class Conversation(NamedTuple):
    """A WebSocket: `hold` talks to the client until one of both leaves."""

    hold: Callable[[Socket], Awaitable[None]]
    subprotocol: str
    most_bytes: int
    """The largest message of a client."""
