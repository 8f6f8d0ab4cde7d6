"""How many connections a server takes, from whom, and how long one may be silent (docs/adr/031, ojs-security §10)."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar, Final, NamedTuple, cast

import structlog
from aiohttp import web

from ojs_engine.access.client_certificates import ClientCertificate, client_certificate
from ojs_engine.base.errors import OjsError
from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog
from ojs_link.timings import Order, Timings
from ojs_runtime.addresses import is_loopback

log = structlog.get_logger(__name__)

_RESERVED_FILES: Final = 100
"""Files that the process needs for itself: NATS, its log, name look-ups, connections that are being refused."""
_MOST_REFUSALS: Final = 50
"""Refused connections that may stay until their clients have read why; others are closed at once."""


class HttpTimings(Timings, frozen=True, kw_only=True):
    """How long clients may take over a connection."""

    header_s: float = 20.0
    """The head of a request has so long to arrive, from its first byte or from the beginning of the connection."""
    refusal_s: float = 1.0
    """A refused connection has so long for that."""
    lingering_s: float = 2.0
    """How long the rest of a refused body is read and thrown away, so that the client sees the refusal."""
    goodbye_s: float = 2.0
    """How long a client may take to answer the end of TLS."""
    usual: ClassVar[Order] = (("refusal_s", "header_s", "a refused client would hold its place longer than others"),)


def raise_file_limit() -> int:
    """Let this process open as many files as it is ever allowed to; returns how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError) as error:  # some systems have a lower limit of their own
            log.warning("the limit of open files stays as it is", limit=soft, reason=str(error))
    return soft


class Refusal(NamedTuple):
    """A limit that a client is beyond: as an error, and as a whole answer to those that have asked nothing yet."""

    code: str
    message: str
    answer: bytes

    @property
    def error(self) -> OjsError:
        """The same as it is raised."""
        return OjsError(self.code, self.message, retry_after=_RETRY_S)


def _nobody(_address: str) -> bool:
    return False


class Connections:
    """The connections of one server: at most `most` in all and `most_of_one` of one address, 0 for any number.

    Addresses of loopback have no limit of their own, as proxies and tests are there, nor do those that it `trusts`: the
    requests of a proxy count by its client. A few that are beyond a limit are kept for one request, in case it asks for
    health.

    A connection whose request has not come whole in time is closed, and one without a request after `idle_s`.
    """

    def __init__(
        self,
        most: int,
        most_of_one: int,
        idle_s: float,
        timings: HttpTimings,
        trusts: Callable[[str], bool] = _nobody,
    ) -> None:
        self._trusts = trusts
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = most if files == resource.RLIM_INFINITY else max(1, min(most, files - _RESERVED_FILES))
        self._most_of_one = most_of_one
        self.timings = timings
        self.idle_s = idle_s
        self._open = 0
        self._by_address: Counter[str] = Counter()
        self._refusals = 0
        self._told = SeldomLog()

    def enter(self, address: str) -> Refusal | None:
        """Count one in, which has to `leave`; or return why it is refused."""
        if self._open >= self._most:
            self._refused("all", self._most, address)
            return _TOO_MANY
        if self._full(address):
            self._refused("address", self._most_of_one, address)
            return _TOO_MANY_OF_ONE
        self._open += 1
        self._by_address[address] += 1
        metrics.CONNECTIONS.set(self._open)
        return None

    @contextmanager
    def visiting(self, address: str) -> Iterator[None]:
        """Count a request that came through a trusted proxy as a connection of its client. Raises rate_limited."""
        if self._full(address):
            self._refused("address", self._most_of_one, address)
            raise _TOO_MANY_OF_ONE.error
        self._by_address[address] += 1
        try:
            yield
        finally:
            self._gone(address)

    def _full(self, address: str) -> bool:
        if not self._most_of_one or self._by_address[address] < self._most_of_one:
            return False
        return not is_loopback(address) and not self._trusts(address)

    def _gone(self, address: str) -> None:
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def hold_refused(self) -> bool:
        """Take one of the places for those that are refused, which has to be given back; False if none is left."""
        if self._refusals >= _MOST_REFUSALS:
            return False
        self._refusals += 1
        return True

    def let_refused_go(self) -> None:
        """Give such a place back."""
        self._refusals -= 1

    def leave(self, address: str) -> None:
        """One that was counted in is closed."""
        self._open -= 1
        self._gone(address)
        metrics.CONNECTIONS.set(self._open)

    def refuse(self, transport: asyncio.Transport, answer: bytes) -> None:
        """Send why. Closed while its request is unread, the connection would be reset, and the answer with it."""
        transport.write(answer)
        if not self.hold_refused():
            transport.close()
            return
        if transport.can_write_eof():  # TLS can't
            transport.write_eof()

        def end() -> None:
            self.let_refused_go()
            transport.close()

        asyncio.get_running_loop().call_later(self.timings.refusal_s, end)

    def _refused(self, limit: str, number: int, address: str) -> None:
        metrics.CONNECTIONS_REFUSED.labels(limit).inc()
        if self._told.due():
            log.warning("connections are refused", limit=limit, most=number, open=self._open, address=address)


class GuardedHandler(web.RequestHandler):
    """aiohttp's connection, kept to the limits of `Connections`."""

    __slots__ = (
        "_address",
        "_connections",
        "_counted",
        "_deadline",
        "_stream",
        "client",
        "client_certificate",
        "refusal",
    )

    def __init__(self, manager: web.Server, connections: Connections, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=connections.idle_s,
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to have none
            lingering_time=connections.timings.lingering_s,
            max_line_size=MOST_TARGET,
            max_field_size=_MOST_FIELD,
        )
        self._connections = connections
        self._address: str | None = None
        self._counted = False
        self.refusal: Refusal | None = None
        """The limit that the client is beyond. Its connection is for one request, which may ask for health alone."""
        self._deadline: asyncio.TimerHandle | None = None
        self._stream: asyncio.Task[object] | None = None
        self.client_certificate: ClientCertificate | None = None
        """What the client has shown, where that is asked for."""
        self.client: str | None = None
        """The client's address, where a balancer that carries the connection has said it."""

    @property
    def patience_s(self) -> float:
        """How long what the client has to send may take, in seconds; less of one that is beyond a limit."""
        timings = self._connections.timings
        return timings.header_s if self.refusal is None else timings.refusal_s

    def take_place(self, address: str) -> bool:
        """Count the connection in for this address, in place of an earlier one, and return whether it has a place.

        Beyond a limit, which is `refusal` then, it gets one of the few places for connections that are refused.
        """
        self.leave()
        self.refusal = self._connections.enter(address)
        self._counted = self.refusal is None
        if not self._counted and not self._connections.hold_refused():
            return False
        self._address = address
        return True

    def leave(self) -> None:
        """Give the place back, if there is one."""
        if self._address is None:
            return
        if self._counted:
            self._connections.leave(self._address)
        else:
            self._connections.let_refused_go()
        self._address = None

    def visiting(self, address: str) -> AbstractContextManager[None]:
        """Return `Connections.visiting`."""
        return self._connections.visiting(address)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._address is None:
            peer = transport.get_extra_info("peername")
            if not self.take_place(str(peer[0]) if peer else ""):
                assert self.refusal is not None
                self._force_close = True  # all that it sends is passed over
                cast("asyncio.Transport", transport).write(self.refusal.answer)
                cast("asyncio.Transport", transport).close()
                return
        self.client_certificate = client_certificate(transport.get_extra_info("peercert"))
        super().connection_made(transport)
        self._begin_deadline()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.leave()
        self._end_deadline()
        super().connection_lost(exc)
        if self._stream is not None:
            self._stream.cancel()

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Cancel what runs inside when the client leaves, and raise ConnectionResetError in its place.

        What writes only now and then would else keep its place until it writes again.
        """
        task = asyncio.current_task()
        assert task is not None
        self._stream = task
        try:
            yield
        except asyncio.CancelledError:
            if self.transport is None and task.uncancel() == 0:
                raise ConnectionResetError("the client has left") from None
            raise
        finally:
            self._stream = None

    def data_received(self, data: bytes) -> None:
        number = self._request_count
        super().data_received(data)
        if self._request_count != number:
            self._end_deadline()
        elif self._deadline is None and self._waits_for_a_request():
            self._begin_deadline()

    def _waits_for_a_request(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def _begin_deadline(self) -> None:
        self._deadline = self._loop.call_later(self.patience_s, self._give_up)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._waits_for_a_request() and self.transport is not None:
            self.transport.write(_TOO_SLOW if self.refusal is None else self.refusal.answer)
            self.force_close()


MOST_TARGET: Final = 8_190
"""Bytes of a request's target."""
_MOST_FIELD: Final = 8_192
"""Bytes of a header field. It differs from those of a target, so that an error says which of them is too long."""


def _answer(status: str, code: str, message: str, more: str = "") -> bytes:
    """A whole answer that costs nothing to make: the shape of every refusal, without what is told of a request."""
    retryable = "true" if more else "false"
    body = f'{{"error":{{"code":"{code}","message":"{message}","retryable":{retryable}}}}}'
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/openjobspec+json\r\nOJS-Version: 1.0\r\nServer: ojs-nats\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


def _refusal(status: str, code: str, message: str) -> Refusal:
    return Refusal(code, message, _answer(status, code, message, f"Retry-After: {_RETRY_S}\r\n"))


_RETRY_S: Final = 5
_TOO_MANY: Final = _refusal(
    "503 Service Unavailable",
    "backend_unavailable",
    "this server has as many connections as it takes; try again, or use another one",
)
_TOO_MANY_OF_ONE: Final = _refusal(
    "429 Too Many Requests",
    "rate_limited",
    "there are too many connections from this address; use fewer, or raise --max-connections-per-address. If it is a "
    "proxy's, name it in --trusted-proxies, so that its clients are counted each",
)
PLAIN_HTTP: Final = _answer("400 Bad Request", "invalid_request", "this port speaks TLS alone: use https:// instead of http://")
NO_PROXY_HEADER: Final = _answer(
    "400 Bad Request",
    "invalid_request",
    "connections from this address have to begin with a header of the PROXY protocol, since --proxy-protocol is on "
    "and the address is one of --trusted-proxies",
)
_TOO_SLOW: Final = _answer("408 Request Timeout", "request_timeout", "the request did not arrive in time")


def streaming(request: web.BaseRequest) -> AbstractContextManager[None]:
    """Return `GuardedHandler.streaming` of a request's connection."""
    protocol = request.protocol
    assert isinstance(protocol, GuardedHandler)
    return protocol.streaming()


def refusal_of(request: web.BaseRequest) -> Refusal | None:
    """Return the limit that a request's connection is beyond; None for one that was counted in."""
    return cast("GuardedHandler", request.protocol).refusal


def visiting(request: web.BaseRequest, address: str) -> AbstractContextManager[None]:
    """Return `Connections.visiting` of a request's server."""
    return cast("GuardedHandler", request.protocol).visiting(address)


def certificate_of(request: web.BaseRequest) -> ClientCertificate | None:
    """Return what the client of a request has shown; None where that isn't asked for."""
    protocol = request.protocol
    assert isinstance(protocol, GuardedHandler)
    return protocol.client_certificate


def has_left(request: web.BaseRequest) -> bool:
    """Return whether a request's connection is closed, or about to be."""
    transport = request.transport
    return transport is None or transport.is_closing()
