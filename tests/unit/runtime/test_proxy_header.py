"""Headers of the PROXY protocol: what they say, and that nothing else is taken for one (docs/adr/031)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ojs_engine.telemetry.metrics import REGISTRY
from ojs_runtime.proxy_header import MOST_BYTES, UNKNOWN, ProxyHeader, ProxyHeaderError, ProxyHeaders, read_header
from support.balancer import (
    LOCAL,
    PROXY,
    SIGNATURE,
    TCP4,
    TCP6,
    UDP4,
    UNIX,
    UNSPECIFIED,
    binary,
    fixed,
    local,
    text,
    tlv,
)
from support.examples import examples
from support.tables import each

AWS = tlv(0xEA, b"\x01vpce-08d2bf15fac5001c9")
"""What AWS's NLB adds, as its manual shows it."""
BALANCER = "10.0.0.9"
LONGEST = ":".join(["ffff"] * 8)

GOOD = [
    (text("203.0.113.7"), "203.0.113.7"),
    (text("2001:db8::7"), "2001:db8::7"),
    (b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255"),
    (f"PROXY TCP6 {LONGEST} {LONGEST} 65535 65535\r\n".encode(), LONGEST),
    (b"PROXY TCP6 ::ffff:203.0.113.7 ::1 0 0\r\n", "203.0.113.7"),
    (b"PROXY UNKNOWN\r\n", UNKNOWN),
    (f"PROXY UNKNOWN {LONGEST} {LONGEST} 65535 65535\r\n".encode(), UNKNOWN),
    (binary("203.0.113.7"), "203.0.113.7"),
    (binary("2001:db8::7"), "2001:db8::7"),
    (binary("::ffff:203.0.113.7"), "203.0.113.7"),
    (binary("203.0.113.7", AWS + tlv(4, b"\0" * 100)), "203.0.113.7"),
    (binary("203.0.113.7", b"no TLVs"), "203.0.113.7"),
    (binary("203.0.113.7", b"\xff" * (MOST_BYTES - 28)), "203.0.113.7"),
    (local(), None),
    (local(AWS), None),
    (fixed(LOCAL, 0xFF, 3) + b"abc", None),  # the family of such a header means nothing
    (binary("203.0.113.7", command=LOCAL), None),
    (fixed(PROXY, UNSPECIFIED, 0), UNKNOWN),
    (fixed(PROXY, UNIX, 216) + b"/run/a.sock".ljust(216, b"\0"), UNKNOWN),
    (fixed(PROXY, UDP4, 12) + b"\xcb\0\x71\x07" * 3, UNKNOWN),
]


@each("sent, source", GOOD)
def test_a_header_says_whose_a_connection_is(sent: bytes, source: str | None) -> None:
    assert read_header(sent) == ProxyHeader(len(sent), source)
    assert read_header(sent + sent) == ProxyHeader(len(sent), source)  # what follows is the client's
    assert all(read_header(sent[:end]) is None for end in range(len(sent)))


BAD = [
    (b"GET / HTTP/1.1\r\n", "missing"),
    (b"PUT /ojs/v1/jobs HTTP/1.1\r\n", "missing"),
    (b"proxy TCP4 1.1.1.1 2.2.2.2 1 2\r\n", "missing"),
    (b"\x16\x03\x01\x02\x00", "missing"),
    (b"\r\n\r\n\x00\r\nQUIT\r", "missing"),
    (b"\r\nGET / HTTP/1.1\r\n", "missing"),
    (b"PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", "malformed"),
    (b"PROXY TCP4 1.1.1.1  2.2.2.2 1 2\r\n", "malformed"),
    (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2 \r\n", "malformed"),
    (b"PROXY TCP4 1.1.1 2.2.2.2 1 2\r\n", "malformed"),
    (b"PROXY TCP4 1.1.1.1 2.2.2.256 1 2\r\n", "malformed"),
    (b"PROXY TCP4 ::1 ::1 1 2\r\n", "malformed"),
    (b"PROXY TCP6 1.1.1.1 2.2.2.2 1 2\r\n", "malformed"),
    (b"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "malformed"),
    (b"PROXY TCP4 1.1.1.1 2.2.2.2 65536 2\r\n", "malformed"),
    (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 02\r\n", "malformed"),
    (b"PROXY TCP4 1.1.1.1 2.2.2.2 -1 2\r\n", "malformed"),
    (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\nGET / HTTP/1.1\r\n", "malformed"),
    (b"PROXY TCP5 1.1.1.1 2.2.2.2 1 2\r\n", "malformed"),
    (b"PROXY UNKNOWNS\r\n", "malformed"),
    (b"PROXY \r\n", "malformed"),
    (b"PROXY UNKNOWN " + b"f" * 93, "too_long"),  # 107 bytes, and no end
    (b"PROXY UNKNOWN " + b"f" * 92 + b"\r\n", "too_long"),
    (SIGNATURE + b"\x11", "malformed"),  # version 1
    (SIGNATURE + b"\x31", "malformed"),
    (SIGNATURE + b"\x22", "malformed"),  # an unknown command
    (SIGNATURE + b"\x21\x41", "malformed"),  # an unknown family
    (SIGNATURE + b"\x21\x13", "malformed"),  # an unknown transport
    (fixed(PROXY, TCP4, 11), "malformed"),
    (fixed(PROXY, TCP6, 35), "malformed"),
    (fixed(PROXY, UNIX, 215), "malformed"),
    (fixed(PROXY, TCP4, MOST_BYTES - 15), "too_long"),
    (fixed(LOCAL, UNSPECIFIED, 65_535), "too_long"),
]


@each("sent, reason", BAD)
def test_what_is_no_header_is_known_by_its_last_byte_at_the_latest(sent: bytes, reason: str) -> None:
    with pytest.raises(ProxyHeaderError) as refused:
        read_header(sent)
    assert refused.value.reason == reason
    assert str(refused.value)


def outcome(data: bytes) -> ProxyHeader | tuple[str, str] | None:
    try:
        return read_header(data)
    except ProxyHeaderError as error:
        return error.reason, error.detail


ADDRESSES = st.ip_addresses().map(str)
HEADERS = st.one_of(
    st.builds(text, ADDRESSES),
    st.builds(binary, ADDRESSES, st.binary(max_size=300)),
    st.builds(local, st.binary(max_size=300)),
    st.builds(fixed, st.integers(0, 255), st.integers(0, 255), st.integers(0, 300)),
    st.builds(lambda rest: b"PROXY " + rest, st.from_regex(rb"[A-Z0-9.: ]{0,120}\r\n", fullmatch=True)),
    st.just(b""),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A header with a few bytes changed, and something behind it."""
    data = bytearray(draw(HEADERS))
    for _ in range(draw(st.integers(0, 3)) if data else 0):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data) + draw(st.binary(max_size=200))


@given(damaged())
@settings(max_examples=examples(400), deadline=None)
def test_pieces_get_the_answer_of_the_whole_and_nothing_else_is_raised(data: bytes) -> None:
    outcomes = [outcome(data[:end]) for end in range(len(data) + 1)]
    told = [found for found in outcomes if found is not None]
    assert all(found == outcomes[-1] for found in told)
    assert outcomes == [None] * (len(outcomes) - len(told)) + told
    if isinstance(outcomes[-1], ProxyHeader):
        assert outcomes[outcomes[-1].length - 1] is None
        assert outcomes[outcomes[-1].length] is not None


@given(st.ip_addresses(), st.binary(max_size=500), st.binary(max_size=50))
@settings(max_examples=examples(100), deadline=None)
def test_an_address_comes_as_it_was_sent(source: IPv4Address | IPv6Address, tlvs: bytes, rest: bytes) -> None:
    mapped = source.ipv4_mapped if isinstance(source, IPv6Address) else None
    for sent in (text(str(source)), binary(str(source), tlvs)):
        assert read_header(sent + rest) == ProxyHeader(len(sent), str(mapped or source))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A balancer's end of a connection, and the gateway's."""
    theirs, ours = socket.socketpair()
    with theirs, ours:
        ours.setblocking(False)
        yield theirs, ours


def refused(reason: str) -> float:
    return REGISTRY.get_sample_value("ojs_proxy_headers_refused_total", {"reason": reason}) or 0.0


@pytest.mark.parametrize("sent", [text("203.0.113.7"), binary("203.0.113.7", AWS)], ids=["text", "binary"])
@pytest.mark.parametrize("piece", [1, 5, 16, 1_000])
async def test_a_header_is_taken_to_its_end_and_no_further(
    pair: tuple[socket.socket, socket.socket], sent: bytes, piece: int
) -> None:
    theirs, ours = pair
    client = asyncio.create_task(ProxyHeaders(BALANCER.__eq__).client(ours, BALANCER, 60))
    whole = sent + b"GET /"
    for begin in range(0, len(whole), piece):
        theirs.sendall(whole[begin : begin + piece])
        await asyncio.sleep(0)
    assert await client == "203.0.113.7"
    assert ours.recv(100) == b"GET /"


async def test_a_balancers_own_connection_keeps_its_address(pair: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = pair
    theirs.sendall(local(AWS))
    assert await ProxyHeaders(BALANCER.__eq__).client(ours, BALANCER, 60) == BALANCER


@pytest.mark.parametrize(
    ("sent", "leaves", "reason"),
    [
        (b"GET / HTTP/1.1", False, "missing"),
        (fixed(PROXY, 0x41, 0), False, "malformed"),
        (fixed(PROXY, TCP4, 60_000), False, "too_long"),
        (b"", False, "timeout"),
        (binary("203.0.113.7")[:-1], False, "timeout"),
        (binary("203.0.113.7")[:-1], True, "closed"),
    ],
    ids=["http", "family", "length", "silent", "cut", "left"],
)
async def test_what_has_no_header_is_told_of_once_a_minute_and_counted(sent: bytes, leaves: bool, reason: str) -> None:
    headers, before = ProxyHeaders(BALANCER.__eq__), refused(reason)
    with capture_logs() as logs:
        for count in range(1, 4):
            theirs, ours = socket.socketpair()
            with theirs, ours:
                ours.setblocking(False)
                theirs.sendall(sent)
                if leaves:
                    theirs.close()
                with pytest.raises(ProxyHeaderError):
                    await headers.client(ours, BALANCER, 0.05 if reason == "timeout" else 60)
            assert refused(reason) == before + count
    [line] = logs
    assert (line["log_level"], line["reason"], line["address"]) == ("info", reason, BALANCER)


async def test_a_look_whether_the_port_is_open_is_not_told_of(pair: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = pair
    theirs.close()
    before = refused("closed")
    with capture_logs() as logs, pytest.raises(ProxyHeaderError):
        await ProxyHeaders(BALANCER.__eq__).client(ours, BALANCER, 60)
    assert (logs, refused("closed")) == ([], before)
