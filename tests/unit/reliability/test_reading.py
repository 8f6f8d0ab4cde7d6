"""The reader of events of a run, against a server whose answers end anywhere."""

from __future__ import annotations

import asyncio

from reliability.reading import Listener
from support.waiting import eventually

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: connected\nretry: 1000\n\n"


def event(number: int) -> bytes:
    return b'id: %d\nevent: job.completed\ndata: {"id":"evt_%d"}\n\n' % (number, number)


async def test_a_reader_goes_on_behind_errors_and_answers_that_are_cut() -> None:
    answers = [
        event(1) + b'event: error\ndata: {"error":{"code":"backend_unavailable"}}\n\n',
        event(2) + event(3)[:-8],
        event(3) + event(4),
    ]
    asked = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HEAD + (answers[len(asked) - 1] if len(asked) <= len(answers) else b""))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    listener = Listener([f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"])
    reading = asyncio.create_task(listener.run())
    try:
        await eventually(lambda: reading.done() or len(asked) > len(answers))
        assert listener.heard == ["evt_1", "evt_2", "evt_3", "evt_4"]
        assert [request.count(b"Last-Event-ID: %d\r\n" % last) for request, last in zip(asked, (0, 1, 2, 4), strict=False)] == [
            1
        ] * 4
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        server.close()
