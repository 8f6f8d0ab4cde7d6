"""Server-sent events as they come over the wire (the WHATWG's HTML standard §9.2)."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import NamedTuple


class Frame(NamedTuple):
    """`cursor` is its id, empty if it has none."""

    kind: str
    data: bytes
    cursor: str


async def frames(stream: AsyncIterable[bytes]) -> AsyncIterator[Frame]:
    """Yield the events of a stream, without comments, to its end."""
    kind, data, cursor = "message", b"", ""
    async for line in stream:
        name, _, value = line.rstrip(b"\r\n").partition(b": ")
        match name:
            case b"event":
                kind = value.decode()
            case b"data":
                data += value
            case b"id":
                cursor = value.decode()
            case b"":
                if data:
                    yield Frame(kind, data, cursor)
                kind, data, cursor = "message", b"", ""
            case _:  # a comment, or how long to wait
                pass
