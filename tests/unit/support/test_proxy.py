"""The proxy that tests put between a client and a server."""

from __future__ import annotations

import gc
import socket
import threading

import pytest

from support.proxy import Proxy

ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n:\r\n\r\n"


def test_it_leaves_no_stream_open_that_nobody_reads_any_more(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = threading.Event()

        def answer() -> None:
            with server.accept()[0] as stream:
                stream.recv(65_536)
                stream.sendall(ENDLESS)
                asked.set()
                stream.recv(1)  # until the proxy has closed it

        answering = threading.Thread(target=answer)
        answering.start()
        with Proxy.before(f"http://127.0.0.1:{server.getsockname()[1]}") as proxy:
            address = proxy.url.removeprefix("http://").split(":")
            with socket.create_connection((address[0], int(address[1]))) as reader:
                reader.sendall(b"GET /stream HTTP/1.1\r\nHost: here\r\n\r\n")
                assert asked.wait(10)
        answering.join(10)
        assert not answering.is_alive()
    gc.collect()
    assert caplog.messages == []  # as of a task that was destroyed while it was pending
