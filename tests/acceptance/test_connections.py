"""Limits of connections and files in whole processes, with the event loop that they run on (docs/adr/031)."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.forked import OJS_NATS
from support.nats import NatsServer
from support.system import Command, Processes

REQUEST = b"GET /ojs/manifest HTTP/1.1\r\nHost: localhost\r\n\r\n"


FEW_FILES = ("sh", "-c", 'ulimit -S -n 512; exec "$@"', "sh")


@pytest.fixture
def small(tmp_path: Path, nats_server: NatsServer) -> Iterator[Command]:
    """A gateway that takes four connections, and began with few files."""
    processes = Processes(tmp_path / "small", nats_server.url)
    try:
        yield processes.start("gateway", "--max-connections", "4", program=(*FEW_FILES, *OJS_NATS))
    finally:
        processes.stop()


def connected(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def rest(connection: socket.socket) -> bytes:
    """What comes until the server closes."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.slow
def test_connections_beyond_the_limit_get_an_answer_and_files_are_as_many_as_may_be(small: Command) -> None:
    url = str(small.ready()["url"])
    with ExitStack() as stack:
        for _ in range(4):
            one = stack.enter_context(connected(url))
            one.sendall(REQUEST)
            assert one.recv(65_536).startswith(b"HTTP/1.1 200 ")
        with connected(url) as refused:
            refused.sendall(REQUEST)
            assert rest(refused).startswith(b"HTTP/1.1 503 ")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    line = next(x for x in Path(f"/proc/{small.pid}/limits").read_text().splitlines() if x.startswith("Max open files"))
    assert line.split()[3:5] == [str(hard), str(hard)]
