from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import chain, islice, repeat

import pytest

from bench.client import Target
from bench.load import Phase, drive
from bench.messages import Requests
from bench.scenarios.connections import Pusher

pytestmark = pytest.mark.slow


def response(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


CREATED = response("201 Created", b"{}")
REFUSED = response("503 Service Unavailable", b'{"error":{"code":"backend_timeout"}}')
HANG_UP = b""


@asynccontextmanager
async def server(answers: Iterator[bytes]) -> AsyncIterator[Target]:
    """Answers request after request, over all connections, with the next of `answers`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                answer = next(answers)
                if answer == HANG_UP:
                    return
                writer.write(answer[:20])
                await asyncio.sleep(0)  # so that they leave as two pieces
                writer.write(answer[20:])
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield Target("127.0.0.1", listener.sockets[0].getsockname()[1])


async def pushed(answers: Iterator[bytes], *, connections: int, requests: int, seconds: float = 20.0) -> Phase:
    async with server(answers) as target:
        phase = Phase()
        shared = islice(repeat(Requests(target).push("q")), requests)
        await drive(phase, [Pusher(target, phase, shared) for _ in range(connections)], seconds=seconds)
        return phase


async def test_every_request_is_sent_once_and_counted_once() -> None:
    phase = await pushed(repeat(CREATED), connections=7, requests=100)
    assert phase.jobs == len(phase.latencies) == 100
    assert phase.exhausted
    assert phase.rate > 0
    assert not phase.errors


async def test_refusals_and_lost_connections_are_counted_and_the_load_goes_on() -> None:
    answers = chain([CREATED, REFUSED, HANG_UP, CREATED, HANG_UP], repeat(CREATED))
    phase = await pushed(answers, connections=2, requests=50)
    assert phase.errors == {"503 backend_timeout": 1, "connection lost": 2}
    assert phase.jobs == 47
