"""The readers of a run, against a server whose answers end anywhere, and one whose counts are behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from aiohttp import web

from reliability.reading import Listener, settled
from reliability.web import Web
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


async def is_settled(counts: Iterable[tuple[int, int]]) -> bool:
    """Whether a system is taken to be settled that says one after the other how many jobs are left, and how many have ended."""
    said = iter(counts)
    last = next(said)

    async def stats(_: web.Request) -> web.Response:
        nonlocal last
        last = next(said, last)
        return web.json_response({"jobs": {"available": last[0], "completed": last[1]}})

    async def workflows(_: web.Request) -> web.Response:
        return web.json_response({"workflows": []})

    app = web.Application()
    app.add_routes([web.get("/ojs/v1/admin/stats", stats), web.get("/ojs/v1/workflows", workflows)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    asking = Web([f"http://127.0.0.1:{runner.addresses[0][1]}"], random.Random(1))
    try:
        return await settled(asking, 1.0, 0.05)
    finally:
        asking.close()
        await runner.cleanup()


async def test_counts_that_are_behind_are_waited_for_as_long_as_jobs_end() -> None:
    """After the load more and more jobs turn out to be left, for longer than the patience lasts."""
    behind = [(3 + number, number) for number in range(40)]
    assert await is_settled([*behind, (0, 80)])


async def test_jobs_of_which_none_ends_are_given_up() -> None:
    assert not await is_settled([(3, 5)])
