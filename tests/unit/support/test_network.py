"""What a link of the bad network does with what it carries, seen from both of its ends."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from support.network import DELAY, DOWN_ALONE, DRIBBLE, GOOD, HALF_OPEN, PARTITION, RESET, STRAND, UP_ALONE, Link, Network
from support.waiting import until

SAID = b"how do you do? " * 100


class Echo:
    """A server that says again what it hears, and keeps it."""

    def __init__(self) -> None:
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65_536):
                    self.heard += data
                    connection.sendall(data)
            except OSError:
                pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    yield server
    server.close()
    thread.join()


@pytest.fixture
def link(echo: Echo) -> Iterator[Link]:
    with Network() as network:
        yield network.link(echo.port)


@contextmanager
def connected(link: Link, seconds: float = 10.0) -> Iterator[socket.socket]:
    """A client that waits so long for an answer."""
    with socket.create_connection(("127.0.0.1", link.port), timeout=seconds) as client:
        yield client


def answer(client: socket.socket, size: int = len(SAID)) -> bytes:
    found = b""
    while len(found) < size and (data := client.recv(65_536)):
        found += data
    return found


def says_nothing(client: socket.socket) -> bool:
    client.settimeout(0.2)
    try:
        return client.recv(1) is None
    except TimeoutError:
        return True
    finally:
        client.settimeout(10.0)


def test_a_good_link_carries_all_and_then_the_end(link: Link, echo: Echo) -> None:
    with connected(link) as client:
        client.sendall(SAID * 1_000)
        client.shutdown(socket.SHUT_WR)
        assert answer(client, 10**9) == SAID * 1_000
        assert echo.heard == SAID * 1_000


def test_a_partition_keeps_connections_and_what_was_sent(link: Link, echo: Echo) -> None:
    with connected(link) as client:
        client.sendall(b"before")
        assert answer(client, 6) == b"before"
        link.become(PARTITION)
        client.sendall(SAID)
        with connected(link) as newcomer:
            newcomer.sendall(b"new")
            assert says_nothing(newcomer)
        assert says_nothing(client)
        assert echo.heard == b"before"
        link.become(GOOD)
        assert answer(client) == SAID


def test_one_way_alone_is_cut(link: Link, echo: Echo) -> None:
    with connected(link) as client:
        client.sendall(b"1")
        assert answer(client, 1) == b"1"
        link.become(UP_ALONE)
        client.sendall(b"2")
        until(lambda: echo.heard == b"12")
        assert says_nothing(client)
        link.become(DOWN_ALONE)
        assert answer(client, 1) == b"2"
        client.sendall(b"3")
        assert says_nothing(client)
        assert echo.heard == b"12"


def test_a_delay_counts_each_way_and_holds_up_nothing_that_follows(link: Link) -> None:
    link.become(DELAY)
    with connected(link) as client:
        began = time.monotonic()
        for number in range(20):
            client.sendall(bytes([number]))
            time.sleep(0.01)
        assert answer(client, 20) == bytes(range(20))
        assert 0.4 <= time.monotonic() - began < 20 * 0.4


def test_a_dribble_brings_all_in_small_pieces(link: Link) -> None:
    link.become(DRIBBLE)
    with connected(link) as client:
        client.sendall(SAID)
        pieces: list[bytes] = []
        while len(b"".join(pieces)) < len(SAID):
            pieces.append(client.recv(65_536))
        assert b"".join(pieces) == SAID
        assert len(pieces) > 5


def test_the_peer_of_a_half_open_connection_never_comes_back(link: Link, echo: Echo) -> None:
    with connected(link) as client:
        client.sendall(b"before")
        assert answer(client, 6) == b"before"
        link.become(HALF_OPEN)
        client.sendall(b"lost")
        with connected(link) as newcomer:
            assert says_nothing(newcomer)
            assert says_nothing(client)
            link.become(GOOD)
            for one in (client, newcomer):
                with pytest.raises(ConnectionResetError):
                    one.recv(1)
    assert echo.heard == b"before"
    with connected(link) as client:
        client.sendall(SAID)
        assert answer(client) == SAID


def test_a_reset_ends_connections_and_takes_none(link: Link) -> None:
    with connected(link) as client:
        client.sendall(b"before")
        assert answer(client, 6) == b"before"
        link.become(RESET)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        with pytest.raises(ConnectionResetError), connected(link) as newcomer:
            newcomer.recv(1)
    link.become(GOOD)
    with connected(link) as client:
        client.sendall(SAID)
        assert answer(client) == SAID


def test_a_stranded_connection_carries_nothing_more_and_a_new_one_does(link: Link, echo: Echo) -> None:
    with connected(link) as client:
        client.sendall(b"1")
        assert answer(client, 1) == b"1"
        link.become(STRAND)
        before = link.held_back
        client.sendall(b"2")
        until(lambda: link.held_back > before)
        with connected(link) as newcomer:
            newcomer.sendall(SAID)
            assert answer(newcomer) == SAID
        link.become(GOOD)
        assert says_nothing(client)
        assert echo.heard == b"1" + SAID
