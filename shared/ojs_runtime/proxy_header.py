"""The header of the PROXY protocol, with which TCP load balancers say whose connection they carry (docs/proxies.md).

The protocol is HAProxy's: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Literal, NamedTuple

import structlog

from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog
from ojs_runtime.addresses import plain, read_address
from ojs_runtime.listen import readable

log = structlog.get_logger(__name__)

Reason = Literal["missing", "malformed", "too_long", "timeout", "closed"]
"""Why a connection has no header that counts: it begins with something else, breaks the protocol, has more bytes
than are read, isn't whole in time, or its sender left amid it.
"""

SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
"""How a binary header (version 2) begins."""
MOST_BYTES: Final = 4_096
"""The longest binary header that is read, TLVs included, as in nginx. HAProxy and AWS send a few hundred bytes."""
UNKNOWN: Final = "unknown"
"""The client's address where a balancer doesn't know it. It is no trusted proxy's, so no HTTP header counts."""

_WORD: Final = b"PROXY "
"""How a header in text (version 1) begins."""
_MOST_TEXT: Final = 107
"""Bytes of a header in text with its end, by the protocol."""
_LINE: Final = re.compile(
    rb"PROXY (?:UNKNOWN(?: [^\r\n]*)?"
    rb"|TCP(?P<family>[46]) (?P<source>[0-9A-Fa-f:.]+) (?P<target>[0-9A-Fa-f:.]+)"
    rb" (?P<from>[0-9]{1,5}) (?P<to>[0-9]{1,5}))"
)
_FIXED: Final = 16
"""Bytes of a binary header before its addresses."""
_LOCAL, _PROXIED = 0, 1
_FAMILIES: Final = {0: 0, 1: 12, 2: 36, 3: 216}
"""The bytes of two addresses by family: unspecified, IPv4, IPv6, paths of Unix sockets."""
_STREAMS: Final = {0x11: 4, 0x21: 16}
"""The bytes of one address, for TCP over IPv4 and IPv6."""
_LAST_TRANSPORT: Final = 2


class ProxyHeader(NamedTuple):
    """A whole header: its length in bytes, and the client's address.

    `source` is None where the balancer speaks for itself, as with health checks: the connection's address counts.
    """

    length: int
    source: str | None


class ProxyHeaderError(ValueError):
    """A beginning of a connection that is no header, and can't become one."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def read_header(data: bytes) -> ProxyHeader | None:
    """Return the header that `data` begins with, in either version; None while it isn't whole.

    The answer depends on the header's bytes alone: what follows them changes nothing, and neither does the number
    of pieces that they come in. TLVs are passed over.

    Args:
        data: all bytes of the connection so far.

    Raises:
        ProxyHeaderError: there is no header at the beginning of `data`, and there will be none.

    """
    if data[: len(SIGNATURE)] == SIGNATURE[: len(data)]:
        return _read_binary(data)
    if data[: len(_WORD)] == _WORD[: len(data)]:
        return _read_text(data)
    raise ProxyHeaderError("missing", "the connection doesn't begin with a header of the PROXY protocol")


def _read_binary(data: bytes) -> ProxyHeader | None:
    # Each byte is judged as soon as it is there, so that pieces get the answer of the whole.
    if len(data) <= len(SIGNATURE):
        return None
    version, command = divmod(data[12], 16)
    if version != 2:
        raise ProxyHeaderError("malformed", f"version {version} in a binary header")
    if command not in (_LOCAL, _PROXIED):
        raise ProxyHeaderError("malformed", f"unknown command {command}")
    if len(data) < 14:
        return None
    family, transport = divmod(data[13], 16)
    if command == _PROXIED and (family not in _FAMILIES or transport > _LAST_TRANSPORT):
        raise ProxyHeaderError("malformed", f"unknown family {data[13]:#04x}")
    if len(data) < _FIXED:
        return None
    follows = int.from_bytes(data[14:16], "big")
    length = _FIXED + follows
    if length > MOST_BYTES:
        raise ProxyHeaderError("too_long", f"a header of {length} bytes; at most {MOST_BYTES} are read")
    if command == _PROXIED and follows < _FAMILIES[family]:
        raise ProxyHeaderError("malformed", f"{follows} bytes for addresses that take {_FAMILIES[family]}")
    if len(data) < length:
        return None
    if command == _LOCAL:
        return ProxyHeader(length, None)
    size = _STREAMS.get(data[13])
    if size is None:
        return ProxyHeader(length, UNKNOWN)
    packed = data[_FIXED : _FIXED + size]
    return ProxyHeader(length, str(plain(IPv4Address(packed) if size == 4 else IPv6Address(packed))))


def _read_text(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _MOST_TEXT)
    if end < 0:
        if len(data) < _MOST_TEXT:
            return None
        raise ProxyHeaderError("too_long", f"a header in text without an end in its first {_MOST_TEXT} bytes")
    line = _LINE.fullmatch(data[:end])
    if line is None:
        raise ProxyHeaderError("malformed", "a header in text that doesn't follow the protocol")
    length = end + 2
    if line["family"] is None:
        return ProxyHeader(length, UNKNOWN)
    ends = [_text_address(line[name], int(line["family"])) for name in ("source", "target")]
    if None in ends or not all(_is_port(line[name]) for name in ("from", "to")):
        raise ProxyHeaderError("malformed", "a header in text with an address or a port that is none")
    return ProxyHeader(length, ends[0])


def _text_address(text: bytes, version: int) -> str | None:
    written = text.decode("ascii")
    found = read_address(written)
    if found is None or (version == 6) is not (":" in written):
        return None
    return str(found)


def _is_port(text: bytes) -> bool:
    return int(text) <= 65_535 and (text == b"0" or not text.startswith(b"0"))


class ProxyHeaders:
    """The headers that the connections of trusted balancers have to begin with; others have none.

    Args:
        trusts: whether an address is a trusted balancer's.

    """

    def __init__(self, trusts: Callable[[str], bool]) -> None:
        self.trusts = trusts
        self._due: dict[Reason, SeldomLog] = {}

    async def client(self, connection: socket.socket, address: str, patience_s: float) -> str:
        """Take the header from a trusted balancer's connection, and return the client's address.

        Args:
            connection: one that was accepted and doesn't block; what follows the header stays to be read.
            address: that of the other end.
            patience_s: how long the header may take to be whole, in seconds.

        Raises:
            ProxyHeaderError: no header has come; it was counted, unless the sender has left without a byte.

        """
        try:
            async with asyncio.timeout(patience_s):
                source = (await _take_header(connection)).source
        except TimeoutError:
            failed = ProxyHeaderError("timeout", f"no whole header within {patience_s:g} s")
        except ProxyHeaderError as error:
            failed = error
        else:
            return address if source is None else source
        if failed.detail:
            self._note(failed, address)
        raise failed

    def _note(self, failed: ProxyHeaderError, address: str) -> None:
        metrics.PROXY_HEADERS_REFUSED.labels(failed.reason).inc()
        if self._due.setdefault(failed.reason, SeldomLog()).due():
            why = {"reason": failed.reason, "detail": failed.detail}
            log.info("connections without a PROXY header end", address=address, **why)


async def _take_header(connection: socket.socket) -> ProxyHeader:
    """Return the header of a connection, of which no byte more is taken. Raises ProxyHeaderError."""
    taken = b""
    while True:
        try:
            seen = connection.recv(MOST_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            await readable(connection)
            continue
        except OSError:  # as balancers end their looks whether the port is open
            seen = b""
        if not seen:
            raise ProxyHeaderError("closed", "the sender has left amid the header" if taken else "")
        header = read_header(taken + seen)
        # What was seen is there to be taken. While no header is whole, all of it is the header's.
        taken += connection.recv(len(seen) if header is None else header.length - len(taken))
        if header is not None and len(taken) == header.length:
            return header
