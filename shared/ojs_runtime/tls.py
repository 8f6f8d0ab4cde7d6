"""Connections by TLS: each is looked at before its handshake, which has a context of its own moment (docs/adr/031)."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import structlog

from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog
from ojs_runtime.certificates import Certificates
from ojs_runtime.connections import PLAIN_HTTP, Connections, GuardedHandler
from ojs_runtime.doors import Door
from ojs_runtime.listen import readable
from ojs_runtime.proxy_header import ProxyHeaders

log = structlog.get_logger(__name__)

Reason = Literal["plain_http", "no_tls", "timeout", "version", "client_certificate", "distrusted", "closed", "other"]
"""Why there was no connection: the client spoke HTTP or something else without TLS, took too long, knows no version of TLS that
is spoken here, showed no certificate or one that isn't trusted, doesn't trust the server's, left, or anything else.
"""

_HANDSHAKE_RECORD: Final = b"\x16"
"""The first byte of TLS (RFC 8446, §5.1)."""
_VERSIONS: Final = frozenset({"UNSUPPORTED_PROTOCOL", "UNKNOWN_PROTOCOL", "VERSION_TOO_LOW"})
_NO_CERTIFICATE: Final = frozenset({"PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED"})
_DISTRUST: Final = ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED", "UNSUPPORTED_CERTIFICATE")
"""Ends of what a client says that doesn't accept the server's certificate."""


class FailedHandshake(NamedTuple):
    """A client that has got no connection."""

    reason: Reason
    address: str
    detail: str


class FailedHandshakes:
    """Counts those of a server, and logs them now and then."""

    def __init__(self) -> None:
        self._due: dict[Reason, SeldomLog] = {}

    def note(self, failed: FailedHandshake) -> None:
        metrics.HANDSHAKES_FAILED.labels(failed.reason).inc()
        if self._due.setdefault(failed.reason, SeldomLog()).due():
            log.warning("TLS handshakes fail", reason=failed.reason, address=failed.address, detail=failed.detail)


class TlsDoor(Door):
    """A door to connections by TLS, with an answer to who speaks HTTP without it.

    `on_failure` hears of the clients that get no connection.
    """

    scheme = "https"

    def __init__(
        self,
        certificates: Certificates,
        connections: Connections,
        on_failure: Callable[[FailedHandshake], None],
        headers: ProxyHeaders | None = None,
    ) -> None:
        super().__init__(connections, headers)
        self._certificates = certificates
        self._on_failure = on_failure

    def start(self) -> None:
        self._certificates.start()

    async def stop(self) -> None:
        await self._certificates.stop()

    async def connect(self, handler: GuardedHandler, connection: socket.socket, address: str) -> bool:
        patience_s = self._connections.timings.header_s
        try:
            async with asyncio.timeout(patience_s):
                first = await _first_byte(connection)
            if first == _HANDSHAKE_RECORD:
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: handler,
                    connection,
                    ssl=self._certificates.context,
                    ssl_handshake_timeout=patience_s,
                    ssl_shutdown_timeout=self._connections.timings.goodbye_s,
                )
                return True
        except (OSError, TimeoutError) as error:  # those of ssl are OSErrors
            connection.close()
            self._on_failure(FailedHandshake(_reason(error), address, _detail(error)))
            return False
        if first.isalpha():
            self._on_failure(FailedHandshake("plain_http", address, "the client speaks HTTP without TLS"))
            await self.answer(connection, PLAIN_HTTP)
            return False
        connection.close()
        if first:  # a look whether the port is open is no handshake
            self._on_failure(FailedHandshake("no_tls", address, f"the first byte is {first[0]:#04x}"))
        return False


async def _first_byte(connection: socket.socket) -> bytes:
    """What comes first, which stays to be read; nothing from a client that has left."""
    await readable(connection)
    return connection.recv(1, socket.MSG_PEEK)


def _reason(error: OSError) -> Reason:
    said = error.reason if isinstance(error, ssl.SSLError) and error.reason else ""
    if said in _NO_CERTIFICATE:
        return "client_certificate"
    if said in _VERSIONS:
        return "version"
    if said.endswith(_DISTRUST):
        return "distrusted"
    if isinstance(error, ssl.SSLError):
        return "other"
    given_up = isinstance(error, TimeoutError) or (isinstance(error, ConnectionAbortedError) and error.errno is None)
    return "timeout" if given_up else "closed"  # asyncio's own has no number


def _detail(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error) or "nothing came in time"
