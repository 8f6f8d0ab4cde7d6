"""Connections that are silent, slow or too many (docs/adr/031)."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.telemetry.metrics import REGISTRY
from ojs_runtime.connections import Connections, HttpTimings, raise_file_limit
from support.waiting import eventually

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
OTHER = b"GET /ojs/manifest HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"GET /healthz HTTP/1.1\r\nHost: local"


@asynccontextmanager
async def connected(http: aiohttp.ClientSession) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    base = http._base_url
    assert base is not None
    reader, writer = await asyncio.open_connection(base.host, base.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes."""
    return await asyncio.wait_for(reader.read(), 60.0)


async def one_answer(reader: asyncio.StreamReader) -> bytes:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


def open_now() -> float:
    return REGISTRY.get_sample_value("ojs_http_connections") or 0.0


@pytest.mark.parametrize("sent", [b"", HALF])
async def test_a_request_that_does_not_come_is_given_up(start: Start, sent: bytes) -> None:
    http = await start(header_s=0.2)
    async with connected(http) as (reader, writer):
        writer.write(sent)
        assert (await rest(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_second_request_that_is_half_sent_is_given_up(start: Start) -> None:
    http = await start(header_s=0.2)
    async with connected(http) as (reader, writer):
        writer.write(WHOLE)
        assert (await one_answer(reader)).startswith(b"HTTP/1.1 200 ")
        writer.write(HALF)
        assert (await rest(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_request_that_drips_is_given_up(start: Start) -> None:
    http = await start(header_s=0.3)
    async with connected(http) as (reader, writer):
        answered = asyncio.create_task(rest(reader))
        while not answered.done():  # a byte at a time never ends
            writer.write(b"G" if reader.at_eof() else b"A")
            await asyncio.wait([answered], timeout=0.05)
        assert b" 40" in answered.result()[:16]


async def test_a_connection_that_is_kept_for_nothing_is_closed(start: Start) -> None:
    http = await start(idle_timeout=0.2)
    async with connected(http) as (reader, writer):
        writer.write(WHOLE)
        assert (await rest(reader)).startswith(b"HTTP/1.1 200 ")


async def test_a_wait_for_work_is_not_silence(start: Start) -> None:
    http = await start(idle_timeout=0.1, header_s=0.1)
    async with http.post("/ojs/v1/workers/fetch", json={"queues": ["q"], "wait_ms": 600}) as answer:
        assert answer.status == 200


async def test_connections_beyond_the_limit_are_told_so_and_taken_again_when_others_leave(start: Start) -> None:
    http = await start(max_connections=2)
    with structlog.testing.capture_logs() as logs:
        async with connected(http) as (first, to_first), connected(http) as (second, to_second):
            for reader, writer in ((first, to_first), (second, to_second)):
                writer.write(WHOLE)
                await one_answer(reader)
            assert open_now() == 2
            for _ in range(3):
                async with connected(http) as (reader, writer):
                    writer.write(OTHER)
                    answer = await rest(reader)
                    assert answer.startswith(b"HTTP/1.1 503 ")
                    assert b"Retry-After: 5" in answer
            async with connected(http) as (reader, _):  # one that asks nothing is told as well
                assert (await rest(reader)).startswith(b"HTTP/1.1 503 ")
            to_first.write(WHOLE)
            assert (await one_answer(first)).startswith(b"HTTP/1.1 200 ")
            to_second.close()
            await eventually(lambda: open_now() == 1)
            async with connected(http) as (reader, writer):
                writer.write(WHOLE)
                assert (await one_answer(reader)).startswith(b"HTTP/1.1 200 ")
    (line,) = [entry for entry in logs if entry["event"] == "connections are refused"]
    assert (line["limit"], line["most"]) == ("all", 2)


def test_one_address_has_a_limit_of_its_own_unless_it_is_this_machine() -> None:
    limits = Connections(100, 2, 1, HttpTimings())
    assert [limits.enter("10.0.0.1") is None for _ in range(3)] == [True, True, False]
    refused = limits.enter("10.0.0.1")
    assert refused is not None
    assert refused.answer.startswith(b"HTTP/1.1 429 ")
    assert refused.error.code == "rate_limited"
    assert limits.enter("10.0.0.2") is None
    assert all(limits.enter(address) is None for address in ("127.0.0.1", "::1") for _ in range(5))
    limits.leave("10.0.0.1")
    assert limits.enter("10.0.0.1") is None
    assert all(Connections(100, 0, 1, HttpTimings()).enter("10.0.0.1") is None for _ in range(5))


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/ojs/v1/health"])
async def test_no_limit_of_connections_refuses_a_health_check(start: Start, path: str) -> None:
    http = await start(max_connections=1)
    asks = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    async with connected(http) as (first, to_first):
        to_first.write(WHOLE)
        await one_answer(first)
        for _ in range(60):  # more than there are places for those that are refused
            async with connected(http) as (reader, writer):
                writer.write(asks)
                answer = await rest(reader)
                assert answer.startswith(b"HTTP/1.1 200 "), answer
                assert b"Connection: close" in answer


def test_a_trusted_proxy_has_no_limit_and_each_of_its_clients_has() -> None:
    limits = Connections(100, 2, 1, HttpTimings(), {"10.0.0.9"}.__contains__)
    assert all(limits.enter("10.0.0.9") is None for _ in range(5))
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(limits.visiting("203.0.113.7"))
        with pytest.raises(OjsError, match="max-connections-per-address"):
            held.enter_context(limits.visiting("203.0.113.7"))
        held.enter_context(limits.visiting("203.0.113.8"))
    with limits.visiting("203.0.113.7"):
        assert limits.enter("203.0.113.7") is None


async def test_streams_of_one_client_behind_a_proxy_leave_room_for_the_others(start: Start) -> None:
    http = await start(trusted_proxies=("127.0.0.1",), max_connections_per_address=2)

    def of(client: str, path: str = "/ojs/manifest") -> Any:
        return http.get(path, headers={"X-Forwarded-For": client})

    async with AsyncExitStack() as open_streams:
        for _ in range(2):
            stream = await open_streams.enter_async_context(of("203.0.113.7", "/ojs/v1/admin/stats/stream"))
            assert stream.status == 200
        async with of("203.0.113.7") as refused, of("203.0.113.8") as other, of("203.0.113.7", "/healthz") as health:
            assert [refused.status, other.status, health.status] == [429, 200, 200]
            assert refused.headers["Retry-After"] == "5"

    async def let_in() -> bool:
        async with of("203.0.113.7") as again:
            return bool(again.status == 200)

    await eventually(let_in)


def test_connections_leave_files_for_the_process_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (103, 103))
    limits = Connections(10_000, 0, 1, HttpTimings())
    assert [limits.enter("127.0.0.1") is None for _ in range(4)] == [True, True, True, False]


def test_the_limit_of_files_is_raised_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = [1_024, 4_096]
    monkeypatch.setattr(resource, "getrlimit", lambda _which: tuple(limit))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, wanted: limit.__setitem__(slice(None), wanted))
    assert raise_file_limit() == 4_096
    assert limit == [4_096, 4_096]


async def test_head_of_a_stream_ends(start: Start) -> None:
    http = await start()
    async with http.head("/ojs/v1/admin/stats/stream") as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
    async with connected(http) as (reader, writer):
        writer.write(b"HEAD /ojs/v1/admin/stats/stream HTTP/1.1\r\nHost: localhost\r\n\r\n" + WHOLE)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).startswith(b"HTTP/1.1 200 ")
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x" * 22 + "==",
    }
    async with http.head("/ojs/v1/ws", headers=upgrade) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET")


async def test_streams_count_as_requests(start: Start) -> None:
    http = await start()
    labels = {"method": "HEAD", "route": "/ojs/v1/admin/stats/stream", "status": "2xx"}
    before = REGISTRY.get_sample_value("ojs_http_request_duration_seconds_count", labels) or 0
    async with http.head("/ojs/v1/admin/stats/stream") as answer:
        assert answer.status == 200
    assert REGISTRY.get_sample_value("ojs_http_request_duration_seconds_count", labels) == before + 1
