from __future__ import annotations

import fcntl
import resource
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from ojs_runtime.listen import Listener, last_call

BURST = 500
"""Connections at once, more than any library listens for by itself."""


@pytest.mark.skipif(int(Path("/proc/sys/net/core/somaxconn").read_text()) < BURST, reason="the kernel takes no more")
@pytest.mark.parametrize("shares_port", [True, False])
async def test_a_burst_of_connections_is_taken_while_the_process_is_busy(shares_port: bool) -> None:
    listener = Listener(web.Application(), "127.0.0.1", 0, shares_port=shares_port)
    await listener.start()
    where = urlsplit(listener.url)
    try:
        with ExitStack() as opened:  # without a turn for the event loop, which accepts them
            for _ in range(BURST):
                opened.enter_context(socket.create_connection((where.hostname or "", where.port or 0), timeout=0.9))
    finally:
        await listener.stop()


async def test_who_connects_before_the_port_closes_is_answered() -> None:
    async def hello(_request: web.Request) -> web.Response:
        response = web.Response(text="hello")
        response.force_close()
        return response

    served = web.Application()
    served.router.add_get("/", hello)
    listener = Listener(served, "127.0.0.1", 0)
    await listener.start()
    where = urlsplit(listener.url)
    with ExitStack() as opened:  # the system has them, and the process has had no turn to take them over
        clients = [
            opened.enter_context(socket.create_connection((where.hostname or "", where.port or 0), timeout=10))
            for _ in range(20)
        ]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await listener.stop(10)
        answers = [client.recv(1_000) for client in clients]
    assert all(answer.endswith(b"hello") for answer in answers)


async def test_sockets_of_any_number_are_looked_at() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2_048), before[1]))
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as low,
            socket.socket(fileno=fcntl.fcntl(low, fcntl.F_DUPFD, 1_500)) as high,
        ):
            await last_call([high], 0.5)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
