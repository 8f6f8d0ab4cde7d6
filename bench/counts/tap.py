"""A proxy between one service and nats-server that counts the messages, by kind, as they cross the wire."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import Final, NamedTuple

_INBOX: Final = "_INBOX."
_VARIES: Final = re.compile(r"[0-9a-f-]{12,}|.*\d{3,}.*|[A-Za-z0-9_-]{20,}")
"""A token of a subject that is of one job, process or moment. An op has 13 hexadecimal digits or more, and may have no three
decimal ones in a row.
"""
_MOST_TOKENS: Final = 9

_PULL: Final = "$JS.API.CONSUMER.MSG.NEXT."
_BESIDES: Final = (
    "$JS.API.INFO",
    "$KV.ojs.service.",
    "$JS.API.STREAM.INFO.KV_ojs",
    "$JS.API.STREAM.INFO.OJS_AUDIT",
    "$KV.ojs.relay.",
)
"""What processes send at times of their own: they show that they live, measure the clock and the room that is left, and store
now and then how far the relay has come.
"""


class Kind(NamedTuple):
    """A kind of message: `way` is `out` (to NATS) or `in`; an answer is named after what was asked."""

    way: str
    name: str

    def __str__(self) -> str:
        return f"{self.way} {self.name}"


class Traffic(NamedTuple):
    """Messages and bytes (subject, headers and body, without the protocol's own words), by kind, and when they passed."""

    messages: Counter[Kind]
    size: Counter[Kind]
    moments: list[float]


class Frames:
    """What the frames of one connection say, both ways, in whatever pieces they come.

    Args:
        varies: a part of queue names that only this run has; a token with it is written `*`.
    """

    def __init__(self, varies: str) -> None:
        self.last = 0.0
        """When the last message that counts passed, by time.monotonic()."""
        self._varies = varies
        self._held = {"out": b"", "in": b""}
        self._asked: dict[str, str] = {}
        self._ended: Counter[str] = Counter()
        """Pulls that ended by their time, by consumer: the next one of each takes their place, which no job causes."""
        self._traffic = Traffic(Counter(), Counter(), [])

    def taken(self) -> Traffic:
        """Return what has passed since it was asked last."""
        found, self._traffic = self._traffic, Traffic(Counter(), Counter(), [])
        return found

    def passed(self, start: str) -> bool:
        """Say whether a kind whose name begins so has passed since `taken`."""
        return any(str(kind).startswith(start) for kind in self._traffic.messages)

    def feed(self, way: str, data: bytes) -> None:
        """Count the whole frames in it, and keep the rest for the next piece."""
        data = self._held[way] + data
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            words = data[at:end].split()
            following = end + 2
            if words and words[0] in (b"PUB", b"HPUB", b"MSG", b"HMSG"):
                size = int(words[-1])
                following += size + 2
                if following > len(data):
                    break
                (self._sent if way == "out" else self._received)(words, size)
            at = following
        self._held[way] = data[at:]

    def _sent(self, words: list[bytes], size: int) -> None:
        subject = words[1].decode()
        sizes = 2 if words[0] == b"HPUB" else 1
        name = self._name(subject)
        if len(words) - sizes == 3:
            self._asked[words[2].decode()] = subject if name.startswith(_PULL) else name
        if name.startswith(_PULL) and self._ended[subject]:
            self._ended[subject] -= 1
        else:
            self._count("out", name, name, len(subject) + size)

    def _received(self, words: list[bytes], size: int) -> None:
        subject = words[1].decode()
        asked = self._asked.get(subject)
        if asked is None:
            self._count("in", name := self._name(subject), name, len(subject) + size)
        elif asked.startswith(_PULL):
            self._ended[asked] += 1  # what a pull brings has the subject that it was stored with, the end of a pull its inbox
        else:
            self._count("in", f"answer to {asked}", asked, len(subject) + size)

    def _count(self, way: str, name: str, about: str, size: int) -> None:
        if not about.startswith(_BESIDES):
            kind = Kind(way, name)
            self.last = time.monotonic()
            self._traffic.messages[kind] += 1
            self._traffic.size[kind] += size
            self._traffic.moments.append(self.last)

    def _name(self, subject: str) -> str:
        if subject.startswith(_INBOX):
            return _INBOX + "*"
        tokens = subject.split(".")
        return ".".join("*" if self._varies in token or _VARIES.fullmatch(token) else token for token in tokens[:_MOST_TOKENS])


class Tap:
    """A proxy on loopback for one service, which passes everything to nats-server and back.

    Args:
        port: where nats-server listens.
        varies: as `Frames` takes it.
    """

    def __init__(self, port: int, varies: str) -> None:
        self.port = 0
        self._server_port = port
        self._varies = varies
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: list[Frames] = []

    @property
    def last(self) -> float:
        """When the last message that counts passed, by time.monotonic()."""
        return max((connection.last for connection in self._connections), default=0.0)

    def passed(self, start: str) -> bool:
        """Say whether a kind whose name begins so has passed since `taken`."""
        return any(connection.passed(start) for connection in self._connections)

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def taken(self) -> Traffic:
        """Return what has passed since it was asked last."""
        found = Traffic(Counter(), Counter(), [])
        for messages, size, moments in (connection.taken() for connection in self._connections):
            found.messages.update(messages)
            found.size.update(size)
            found.moments.extend(moments)
        return found

    def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nats_reader, nats_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        frames = Frames(self._varies)
        self._connections.append(frames)
        for way in (self._pass("out", frames, reader, nats_writer), self._pass("in", frames, nats_reader, writer)):
            task = asyncio.create_task(way)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, way: str, frames: Frames, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(2**18):
                frames.feed(way, data)
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()
