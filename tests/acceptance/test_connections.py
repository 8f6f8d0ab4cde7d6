"""Limits of connections and files in whole processes, with the event loop that they run on (docs/adr/031)."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.system import System, environment
from support.waiting import until

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[System]:
    """A system that takes four connections, gives up heads after a second, and began with few files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        with System.started(tmp_path / "small", "--max-connections", "4", env=environment(OJS_HEADER_TIMEOUT="1")) as system:
            yield system
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connected(system: System) -> socket.socket:
    address = urlsplit(system.url)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def rest(connection: socket.socket) -> bytes:
    """What comes until the server closes."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.slow
def test_connections_beyond_the_limit_get_an_answer_and_files_are_as_many_as_may_be(small: System) -> None:
    with ExitStack() as stack:
        kept = [stack.enter_context(connected(small)) for _ in range(4)]
        for one in kept:
            one.sendall(REQUEST)
            assert one.recv(65_536).startswith(b"HTTP/1.1 200 ")
        with connected(small) as refused:
            refused.sendall(REQUEST)
            assert rest(refused).startswith(b"HTTP/1.1 503 ")

    def gave_up() -> bool:
        with connected(small) as half:
            half.sendall(REQUEST[:20])
            answer = rest(half)
        assert answer.startswith((b"HTTP/1.1 408 ", b"HTTP/1.1 503 "))
        return answer.startswith(b"HTTP/1.1 408 ")

    until(gave_up)  # the server may not have heard yet that the others are closed
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for name, pid in small.children.items():
        if name != "nats-server":
            line = next(x for x in Path(f"/proc/{pid}/limits").read_text().splitlines() if x.startswith("Max open files"))
            assert line.split()[3:5] == [str(hard), str(hard)], name
