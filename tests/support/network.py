"""A network that can be bad: TCP proxies on loopback, whose condition a test changes while they run.

What a link holds back it keeps, in order, and delivers later, as TCP does over a network that loses packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Coroutine
from functools import partial
from threading import Thread
from typing import Any, Final, Self, TypeVar

from msgspec import Struct

T = TypeVar("T")

_CHUNK: Final = 65_536
_CHUNKS: Final = 32
"""How many chunks are on their way in one direction, at the most."""
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose end is a reset."""


class Condition(Struct, frozen=True, kw_only=True):
    """What a link does with what it carries. `up` is from clients to the server, `down` the way back."""

    name: str
    up: bool = True
    """Whether it carries this way; new connections reach the server by it, too."""
    down: bool = True
    delay_s: float = 0.0
    """Each way."""
    piece: int = 0
    """Carries up to so many bytes at a time, a random number, and a thousand pieces a second; 0: no such bound."""
    forgets: bool = False
    """What was on its way when the condition ends is lost, and the connections of then are reset."""
    resets: bool = False
    """Every connection is reset at once, new ones as well."""
    strands: bool = False
    """The connections of its beginning carry nothing more, for ever, and nobody is told; new ones are as good as any."""


GOOD: Final = Condition(name="good")
PARTITION: Final = Condition(name="partition", up=False, down=False)
UP_ALONE: Final = Condition(name="no answers", down=False)
DOWN_ALONE: Final = Condition(name="no requests", up=False)
DELAY: Final = Condition(name="200 ms each way", delay_s=0.2)
DRIBBLE: Final = Condition(name="dribble", piece=48)
HALF_OPEN: Final = Condition(name="half-open", up=False, down=False, forgets=True)
RESET: Final = Condition(name="reset", resets=True)
STRAND: Final = Condition(name="strand", strands=True)
LOST_ANSWERS: Final = Condition(name="lost answers", down=False, forgets=True)

BAD: Final = (PARTITION, UP_ALONE, DOWN_ALONE, DELAY, DRIBBLE, HALF_OPEN, RESET)
"""What whole systems are tried with."""


class Network:
    """Links, carried by a thread of its own. As a context manager it starts, and ends every connection."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._links: list[Link] = []

    def link(self, port: int) -> Link:
        """Return a new way to a port of this machine, where nobody needs to listen yet."""
        link = Link(self, port)
        self._links.append(link)
        return link

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the thread, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._links:
            self.run(link.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Link:
    """A proxy in front of one port. It is made by `Network.link`."""

    def __init__(self, network: Network, target: int) -> None:
        self._network = network
        self._target = target
        listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _CHUNK)  # so that who sends much notices a partition
        self.port: int = listener.getsockname()[1]
        self.held_back = 0
        """How often something came that it didn't carry at once."""
        self._condition = GOOD
        self._began = 0
        """The number of its condition: how often that has changed."""
        self._stranded_before = 0
        """Connections of conditions before this one are stranded."""
        self._changed = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._server = network.run(asyncio.start_server(self._accept, sock=listener, limit=_CHUNK))

    def become(self, condition: Condition) -> None:
        """Change what it does, for the connections that there are as well; returns when that is so."""
        self._network.run(self._become(condition))

    async def carries(self, *, up: bool, since: int) -> Condition:
        """Wait until it carries this way for a connection that is there `since` a condition; returns its condition of then."""
        held = False
        while since < self._stranded_before or not (self._condition.up if up else self._condition.down):
            self.held_back += not held
            held = True
            await self._changed.wait()
        return self._condition

    async def close(self) -> None:
        """End its connections, and take no more."""
        self._server.close()
        await self._end_all()

    async def _become(self, condition: Condition) -> None:
        before, self._condition = self._condition, condition
        self._began += 1
        if condition.strands:
            self._stranded_before = self._began
        if before.forgets or condition.resets:
            await self._end_all()
        self._changed.set()
        self._changed = asyncio.Event()

    async def _end_all(self) -> None:
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._condition.resets:
            self.held_back += 1
            _reset(writer)
            return
        task = asyncio.create_task(_Connection(self, reader, writer, self._began).carry(self._target))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)


class _Connection:
    """One connection through a link: both ways of it."""

    def __init__(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, since: int) -> None:
        self._link = link
        self._since = since
        self._client = (reader, writer)
        self._writers = [writer]

    async def carry(self, target: int) -> None:
        """Connect to the server, and carry until both ends have ended. Whatever goes wrong resets both."""
        try:
            await self._link.carries(up=True, since=self._since)
            reader, writer = await asyncio.open_connection("127.0.0.1", target, limit=_CHUNK)
            self._writers.append(writer)
            async with asyncio.TaskGroup() as group:
                up = _Way(self._link, self._client[0], writer, up=True, since=self._since)
                down = _Way(self._link, reader, self._client[1], up=False, since=self._since)
                for way in (up, down):
                    group.create_task(way.read())
                    group.create_task(way.write())
            for each in self._writers:
                each.close()
        except* OSError:
            pass
        finally:
            for each in self._writers:
                if not each.is_closing():
                    _reset(each)


class _Way:
    """One direction of a connection: what was read waits in a queue for its time."""

    def __init__(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool, since: int) -> None:
        self._carried = partial(link.carries, up=up, since=since)
        self._reader = reader
        self._writer = writer
        self._under_way: asyncio.Queue[tuple[float, bytes | OSError]] = asyncio.Queue(_CHUNKS)

    async def read(self) -> None:
        """Read until the end, or until something breaks; the other side learns either when its turn comes."""
        clock = asyncio.get_running_loop().time
        found: bytes | OSError = b" "
        while found and not isinstance(found, OSError):
            try:
                found = await self._reader.read(_CHUNK)
            except OSError as error:
                found = error
            await self._under_way.put((clock(), found))

    async def write(self) -> None:
        """Deliver what was read, each at its time."""
        clock = asyncio.get_running_loop().time
        while True:
            came, data = await self._under_way.get()
            condition = await self._carried()
            if (early := came + condition.delay_s - clock()) > 0:
                await asyncio.sleep(early)
                await self._carried()
            if isinstance(data, OSError):
                raise data
            if not data:
                self._writer.write_eof()
                return
            await self._deliver(data)

    async def _deliver(self, data: bytes) -> None:
        while data:
            piece = (await self._carried()).piece
            size = random.randint(1, piece) if piece else len(data)
            self._writer.write(data[:size])
            await self._writer.drain()
            data = data[size:]
            if piece:
                await asyncio.sleep(0.001)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by a reset; nothing if it has ended by itself."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    writer.transport.abort()
