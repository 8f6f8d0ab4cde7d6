"""A gateway behind TCP load balancers, which say whose connections they carry ahead of their bytes (docs/adr/031)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import aiohttp
import pytest
from structlog.testing import capture_logs

from ojs_engine.telemetry.metrics import REGISTRY
from support.balancer import PROXY, TCP4, UNSPECIFIED, binary, fixed, local, text, tlv
from support.certificates import Authority, Pair
from support.waiting import eventually
from unit.gateway.conftest import Start

BALANCER, STRANGER = "127.0.0.1", "127.0.0.2"
CLIENT: Final = "203.0.113.7"
NLB: Final[dict[str, Any]] = {"trusted_proxies": (BALANCER,), "proxy_protocol": True}
"""The settings of a gateway behind one."""
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def asking(path: str = "/ojs/manifest", *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


@asynccontextmanager
async def connected(http: aiohttp.ClientSession, address: str = BALANCER) -> AsyncIterator[Stream]:
    """A connection from this address."""
    base = http._base_url
    assert base is not None
    reader, writer = await asyncio.open_connection(base.host, base.port, local_addr=(address, 0))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def answer(stream: Stream, sent: bytes = b"") -> bytes:
    """The status line and headers of one answer; nothing if the connection ends."""
    stream[1].write(sent)
    async with asyncio.timeout(60):
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            return await stream[0].readuntil(b"\r\n\r\n")
    return b""


async def asked(http: aiohttp.ClientSession, sent: bytes, address: str = BALANCER) -> int | None:
    """The status that a connection of its own gets; None if it gets nothing."""
    async with connected(http, address) as stream:
        said = await answer(stream, sent)
    return int(said.split()[1]) if said else None


async def rest(stream: Stream) -> bytes:
    """What comes until the gateway closes."""
    found = b""
    async with asyncio.timeout(60):
        with suppress(ConnectionError):
            while part := await stream[0].read(4_096):
                found += part
    return found


def open_now() -> float:
    return REGISTRY.get_sample_value("ojs_http_connections") or 0.0


def refused(reason: str) -> float:
    return REGISTRY.get_sample_value("ojs_proxy_headers_refused_total", {"reason": reason}) or 0.0


FORWARDED = "X-Forwarded-For: 198.51.100.1"
CLIENTS = [
    (text(CLIENT), BALANCER, CLIENT),
    (binary(CLIENT), BALANCER, CLIENT),
    (binary("2001:db8::7", tlv(4, b"\0" * 500)), BALANCER, "2001:db8::7"),
    (binary(BALANCER), BALANCER, "198.51.100.1"),  # a trusted proxy behind the balancer: its headers count
    (local(), BALANCER, "198.51.100.1"),
    (b"PROXY UNKNOWN\r\n", BALANCER, "unknown"),
    (fixed(PROXY, UNSPECIFIED, 0), BALANCER, "unknown"),
    (b"", STRANGER, STRANGER),
]
NAMES = ["text", "binary", "ipv6", "trusted", "local", "unknown", "unspecified", "stranger"]


@pytest.mark.parametrize(("header", "peer", "address"), CLIENTS, ids=NAMES)
async def test_a_balancers_header_says_whose_requests_are(
    start: Start,
    header: bytes,
    peer: str,
    address: str,
) -> None:
    """`X-Forwarded-For` counts if the address that the header names is a trusted proxy's."""
    http = await start(request_log="all", **NLB)
    with capture_logs() as logs:
        async with connected(http, peer) as stream:
            assert b" 200 OK" in await answer(stream, header + asking("/ojs/manifest", FORWARDED))
            await stream[0].readuntil(b"}")
            stream[1].write(asking("/nowhere", FORWARDED))  # a second request of the same connection
            await eventually(lambda: len([entry for entry in logs if entry["event"] == "request"]) == 2)
    assert [entry["address"] for entry in logs if entry["event"] == "request"] == [address, address]


@pytest.mark.parametrize("header", [text(CLIENT), binary(CLIENT), local()], ids=["text", "binary", "local"])
async def test_nobody_but_a_trusted_balancer_can_name_an_address(start: Start, header: bytes) -> None:
    """A header of others is no HTTP, and neither is that of anybody where the setting is off, nor a second one."""
    http = await start(**NLB)
    assert await asked(http, asking(), STRANGER) == 200
    status = await asked(http, header + asking(), STRANGER)
    assert status is not None
    assert 400 <= status < 500
    assert await asked(http, binary("203.0.113.9") + header + asking()) == status
    off = await start(trusted_proxies=(BALANCER,))
    assert await asked(off, header + asking()) == status
    assert await asked(off, asking()) == 200


async def test_a_trusted_address_without_a_header_is_told_what_is_missing(start: Start) -> None:
    http = await start(**NLB)
    before = refused("missing")
    async with connected(http) as stream:
        stream[1].write(asking())
        said = await rest(stream)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"--proxy-protocol is on" in said
    assert refused("missing") == before + 1
    await eventually(lambda: open_now() == 0)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (fixed(PROXY, 0x51, 12), "malformed"),
        (fixed(0x31, TCP4, 12), "malformed"),
        (fixed(PROXY, TCP4, 65_535), "too_long"),
        (b"PROXY TCP4 1.1.1.1\r\n", "malformed"),
        (binary(CLIENT)[:20], "timeout"),
        (b"", "timeout"),
    ],
    ids=["family", "version", "length", "text", "cut", "silent"],
)
async def test_a_bad_header_ends_its_connection_alone(start: Start, sent: bytes, reason: str) -> None:
    http = await start(header_s=0.3 if reason == "timeout" else 20.0, **NLB)
    before = refused(reason)
    async with connected(http) as good:
        assert b" 200 OK" in await answer(good, binary(CLIENT) + asking("/healthz"))
        with capture_logs() as logs:
            for _ in range(3):
                async with connected(http) as bad:
                    bad[1].write(sent)
                    assert await rest(bad) == b""
        if reason != "timeout":  # else it was silent for too long by now
            await good[0].readuntil(b"}")
            assert b" 200 OK" in await answer(good, asking("/healthz"))
    assert refused(reason) == before + 3
    [line] = [entry for entry in logs if "PROXY" in entry["event"]]
    assert (line["log_level"], line["reason"]) == ("info", reason)
    await eventually(lambda: open_now() == 0)


async def test_a_header_that_drips_has_a_deadline(start: Start) -> None:
    http = await start(header_s=0.3, **NLB)
    async with connected(http) as stream:
        ended = asyncio.create_task(rest(stream))
        for byte in binary(CLIENT, b"\0" * 3_000):  # as slowly as one byte at a time, it takes minutes
            stream[1].write(bytes([byte]))
            if await asyncio.wait([ended], timeout=0.05) != (set(), {ended}):
                break
        assert ended.done()
        assert ended.result() == b""


async def test_silent_connections_of_a_balancer_count(start: Start) -> None:
    http = await start(max_connections=1, **NLB)
    async with connected(http):
        await eventually(lambda: open_now() == 1)
        assert await asked(http, binary(CLIENT) + asking()) == 503
        assert await asked(http, local() + asking("/healthz")) == 200  # a health check is answered beyond the limit
    await eventually(lambda: open_now() == 0)
    assert await asked(http, binary(CLIENT) + asking()) == 200


async def test_each_client_of_a_balancer_has_the_limit_of_an_address(start: Start) -> None:
    http = await start(max_connections_per_address=2, **NLB)
    async with AsyncExitStack() as kept:
        for _ in range(2):
            stream = await kept.enter_async_context(connected(http))
            assert b" 200 OK" in await answer(stream, binary(CLIENT) + asking())
        assert await asked(http, text(CLIENT) + asking()) == 429
        assert await asked(http, text("203.0.113.8") + asking()) == 200
        for _ in range(3):  # the balancer itself has none
            stream = await kept.enter_async_context(connected(http))
            assert b" 200 OK" in await answer(stream, local() + asking())

    async def let_in() -> bool:
        return await asked(http, binary(CLIENT) + asking()) == 200

    await eventually(let_in)


async def test_a_request_with_its_header_in_pieces_is_answered(start: Start) -> None:
    http = await start(**NLB)
    async with connected(http) as stream:
        for byte in binary(CLIENT) + asking():
            stream[1].write(bytes([byte]))
            await asyncio.sleep(0)
        assert b" 200 OK" in await answer(stream)


# TLS, which begins behind the header


@pytest.fixture
def authority(tmp_path: Any) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def pair(authority: Authority) -> Pair:
    return authority.server()


@pytest.mark.parametrize("header", [text(CLIENT), binary(CLIENT, tlv(4, b"\0" * 500))], ids=["text", "binary"])
async def test_tls_begins_behind_the_header(start: Start, pair: Pair, authority: Authority, header: bytes) -> None:
    http = await start(tls_cert=pair.certificate, tls_key=pair.key, request_log="all", **NLB)
    with capture_logs() as logs:
        async with connected(http) as stream:
            stream[1].write(header)
            await stream[1].start_tls(authority.trusting(), server_hostname="127.0.0.1")
            assert b" 200 OK" in await answer(stream, asking("/ojs/manifest", FORWARDED))
            await eventually(lambda: [entry for entry in logs if entry["event"] == "request"])
    assert [entry["address"] for entry in logs if entry["event"] == "request"] == [CLIENT]
    async with connected(http, STRANGER) as stream:  # who comes past the balancer has no header
        await stream[1].start_tls(authority.trusting(), server_hostname="127.0.0.1")
        assert b" 200 OK" in await answer(stream, asking())


async def test_a_handshake_that_fails_is_the_clients(start: Start, pair: Pair) -> None:
    http = await start(tls_cert=pair.certificate, tls_key=pair.key, **NLB)
    with capture_logs() as logs:
        async with connected(http) as stream:
            stream[1].write(binary(CLIENT) + asking())
            assert b"this port speaks TLS alone" in await rest(stream)
    [line] = [entry for entry in logs if entry["event"] == "TLS handshakes fail"]
    assert (line["reason"], line["address"]) == ("plain_http", CLIENT)
    before = refused("missing")
    async with connected(http) as stream:
        stream[1].write(b"\x16\x03\x01\x02\x00\x01")  # a handshake without a header before it
        assert await rest(stream) == b""
    assert refused("missing") == before + 1
    await eventually(lambda: open_now() == 0)
