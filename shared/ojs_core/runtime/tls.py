"""Connections by TLS: each is looked at before its handshake, which has a context of its own moment (docs/adr/074)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple, cast

import structlog
from aiohttp import web

from ojs_core.base.loops import start_loop, stop_loop
from ojs_core.runtime.certificates import Certificates
from ojs_core.runtime.connections import PLAIN_HTTP, Connections, GuardedHandler
from ojs_core.runtime.listen import LAST_CALL_S, last_call
from ojs_core.telemetry import metrics
from ojs_core.telemetry.logs import SeldomLog

log = structlog.get_logger(__name__)

Reason = Literal["plain_http", "no_tls", "timeout", "version", "client_certificate", "distrusted", "closed", "other"]
"""Why there was no connection: the client spoke HTTP or something else without TLS, took too long, knows no version of TLS that
is spoken here, showed no certificate or one that isn't trusted, doesn't trust the server's, left, or anything else.
"""

_HANDSHAKE_RECORD: Final = b"\x16"
"""The first byte of TLS (RFC 8446, §5.1)."""
_GOODBYE_S: Final = 2.0
"""How long a client may take to answer the end of TLS."""
_LOG_S: Final = 60.0
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_S: Final = 1.0
"""Before connections are accepted again when there was no file for one, as asyncio itself waits."""
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
        if self._due.setdefault(failed.reason, SeldomLog(_LOG_S)).due():
            log.warning("TLS handshakes fail", reason=failed.reason, address=failed.address, detail=failed.detail)


class TlsDoor:
    """Turns accepted sockets into connections of a server: by TLS, or with an answer to who speaks HTTP without it.

    A client counts among `connections` from the moment it is accepted. `on_failure` hears of those that get no connection.
    """

    def __init__(
        self, certificates: Certificates, connections: Connections, on_failure: Callable[[FailedHandshake], None]
    ) -> None:
        self.certificates = certificates
        self._connections = connections
        self._on_failure = on_failure

    async def admit(self, server: Callable[[], GuardedHandler], connection: socket.socket, address: str) -> None:
        """Make one connection of `server`, which may fail."""
        refusal = self._connections.enter(address)
        handler = server()
        if refusal is None:
            handler.admitted(address)
        elif self._connections.hold_refused():
            handler.refused(address, refusal)
        else:
            connection.close()
            return
        try:
            connected = await self._connected(handler, connection, address)
        except BaseException:
            handler.leave()
            raise
        if connected is None:
            handler.leave()

    async def _connected(self, protocol: asyncio.Protocol, connection: socket.socket, address: str) -> asyncio.Transport | None:
        """A connection by TLS; None if there is none, which is told of and ended."""
        loop = asyncio.get_running_loop()
        try:
            connection.setblocking(False)
            async with asyncio.timeout(self._connections.header_s):
                first = await _first_byte(connection)
            if first == _HANDSHAKE_RECORD:
                transport, _ = await loop.connect_accepted_socket(
                    lambda: protocol,
                    connection,
                    ssl=self.certificates.context,
                    ssl_handshake_timeout=self._connections.header_s,
                    ssl_shutdown_timeout=_GOODBYE_S,
                )
                return transport
        except (OSError, TimeoutError) as error:  # those of ssl are OSErrors
            connection.close()
            self._on_failure(FailedHandshake(_reason(error), address, _detail(error)))
            return None
        except BaseException:
            connection.close()
            raise
        if first.isalpha():
            self._on_failure(FailedHandshake("plain_http", address, "the client speaks HTTP without TLS"))
            plain, _ = await loop.connect_accepted_socket(_Deaf, connection)
            self._connections.refuse(plain, PLAIN_HTTP)
            return None
        connection.close()
        if first:  # a look whether the port is open is no handshake
            self._on_failure(FailedHandshake("no_tls", address, f"the first byte is {first[0]:#04x}"))
        return None


class TlsSite(web.BaseSite):
    """Listens for a runner whose server has `GuardedHandler`s, as aiohttp's `TCPSite` does."""

    def __init__(self, runner: web.BaseRunner, host: str, port: int, door: TlsDoor, *, backlog: int, reuse_port: bool) -> None:
        super().__init__(runner, backlog=backlog)
        self._host = host
        self._port = port
        self._door = door
        self._reuse_port = reuse_port
        self._listening: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        return f"https://{self._host}:{self._port}"

    async def start(self) -> None:
        """Bind and accept. Raises OSError if the address can't be had."""
        await super().start()
        served = self._runner.server
        assert served is not None
        loop = asyncio.get_running_loop()
        bound = await loop.create_server(
            served, self._host, self._port, reuse_address=True, reuse_port=self._reuse_port, start_serving=False
        )
        self._server = bound
        for bound_socket in bound.sockets:
            listening = socket.socket(fileno=os.dup(bound_socket.fileno()))
            self._listening.append(listening)
            listening.setblocking(False)
            listening.listen(self._backlog)
        self._accepting = [start_loop("accept", partial(self._accept, each)) for each in self._listening]
        self._door.certificates.start()

    async def stop(self) -> None:
        """Accept no more. Handshakes that are under way have a moment to end."""
        await last_call(self._listening)
        for accepting in self._accepting:
            await stop_loop(accepting)
        for listening in self._listening:
            listening.close()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=LAST_CALL_S)
        await self._door.certificates.stop()
        for handshake in self._under_way:
            handshake.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await super().stop()

    async def _accept(self, listening: socket.socket) -> None:
        served = self._runner.server
        assert served is not None
        try:
            connection, peer = await asyncio.get_running_loop().sock_accept(listening)
        except OSError as error:
            if error.errno in _NO_ROOM:
                log.error("connections can't be accepted", reason=error.strerror)
                await asyncio.sleep(_PAUSE_S)
            return
        task = asyncio.create_task(self._door.admit(_handlers(served), connection, str(peer[0])))
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, handshake: asyncio.Task[None]) -> None:
        self._under_way.discard(handshake)
        if not handshake.cancelled() and (error := handshake.exception()) is not None:
            log.error("a connection failed", exc_info=error)


def _handlers(served: web.Server) -> Callable[[], GuardedHandler]:
    """What makes a server's connections, which are guarded."""
    return cast("Callable[[], GuardedHandler]", served)


class _Deaf(asyncio.Protocol):
    """Passes over whatever comes."""


async def _first_byte(connection: socket.socket) -> bytes:
    """What comes first, which stays to be read; nothing from a client that has left."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(connection, wake)
    try:
        await readable
    finally:
        loop.remove_reader(connection)
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
