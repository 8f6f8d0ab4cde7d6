"""Where HTTP ends: from a request to the handler's answer with its headers, and from any failure to the error envelope."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, cast

import structlog
from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import BadHttpMethod, LineTooLong
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import HttpVersion11
from multidict import istr

from ojs_engine.api.large_bodies import LARGE_BYTES, LargeBodies
from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import shown
from ojs_engine.base.ids import new_request_id, request_id_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.readable import ALL_READABLE, readable_headers, require_readable
from ojs_engine.telemetry import metrics
from ojs_engine.wire.dialects.readers import Dialect
from ojs_engine.wire.errors import error_body
from ojs_engine.wire.system.extensions import SupportedExtensions
from ojs_gateway.dialects.readers import dialect_of
from ojs_gateway.http.answer import Answer
from ojs_gateway.http.compression import accepts_gzip, compressed
from ojs_gateway.http.door import Door
from ojs_gateway.http.endpoint import Endpoint, StreamedResponse
from ojs_gateway.http.request import UNREADABLE, HttpCall, Site, said_by_parser
from ojs_gateway.http.request_log import AnsweredRequest, RequestLog
from ojs_gateway.http.router import Router
from ojs_gateway.http.showing import shown as shown_body
from ojs_runtime import tracing
from ojs_runtime.browsers import DECIDING, HOST, METHODS, Browsers, check_media_type
from ojs_runtime.connections import (
    MOST_TARGET,
    Connections,
    GuardedHandler,
    certificate_of,
    has_left,
    refusal_of,
    visiting,
)
from ojs_runtime.proxies import Proxies, Visit

log = structlog.get_logger(__name__)

_OJS_VERSION: Final = istr("OJS-Version")
_REQUEST_ID: Final = istr("X-Request-Id")
_REQUIRES: Final = istr("OJS-Requires-Extension")
_DECIDING: Final = (*DECIDING, _OJS_VERSION, _REQUIRES)
"""Headers that every operation goes by, so that a request is refused for one that isn't text."""
_NOSNIFF: Final = istr("X-Content-Type-Options")
_NO_STORE: Final = "no-store"
"""Answers are about now, and of who asks. What may be kept says so itself, as the dashboard's files do."""
_HEALTH: Final = frozenset({"getHealth", "getLiveness"})
"""Operations that no limit of connections refuses: a balancer would take the gateway for dead."""
_NO_PLACE: Final[AbstractContextManager[None]] = nullcontext()
_NO_ROUTE: Final = "none"
SPOKEN: Final = "1.0"


class Edge:
    """Turns requests into answers; nothing that goes wrong gets past it."""

    def __init__(
        self,
        router: Router,
        limits: PayloadLimits,
        browsers: Browsers,
        door: Door,
        aside: LargeBodies,
        log_request: RequestLog | None,
        site: Site,
        proxies: Proxies,
        extensions: SupportedExtensions,
        body_s: float,
    ) -> None:
        self._body_s = body_s
        self._site = site
        self._proxies = proxies or None
        self._aside = aside
        self._log_request = log_request
        self._door = door
        self._router = router
        self._browsers = browsers
        self._limits = limits
        self._extensions = extensions
        self.closing: Callable[[], bool] = lambda: False
        """Whether each answer is the last on its connection, and says so: else a client that asks again at once would
        be cut off without an answer, and a balancer go on with the connections that it has.
        """

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        route = _NO_ROUTE
        headers = request.headers
        tracing.answering(headers)
        request_id = request_id_of(headers.get(_REQUEST_ID))
        version = headers.get(_OJS_VERSION)
        dialect = dialect_of(headers.get(hdrs.USER_AGENT), headers.get(hdrs.ACCEPT), version, headers.get(hdrs.CONTENT_TYPE))
        cors: tuple[tuple[str, str], ...] = ()
        call: HttpCall | None = None
        unreadable = request.get(UNREADABLE, ALL_READABLE)
        visit: Visit | None = None
        try:
            if unreadable:
                require_readable(unreadable, _DECIDING)
            visit = self._visit(request)
            host = headers.get(HOST) if visit is None else visit.host
            self._browsers.admit_name(host)
            cors = self._admitted(request, host)
            if hdrs.TRANSFER_ENCODING in headers and request.version < HttpVersion11:  # RFC 9112, §6.1
                raise OjsError("invalid_payload", "HTTP/1.0 has no Transfer-Encoding; send Content-Length")
            require_supported(dialect, version)
            if _REQUIRES in headers:
                self._extensions.require(",".join(headers.getall(_REQUIRES)))
            preflight = self._browsers.preflight(request.method, headers)
            if preflight is not None:
                status, body, more = 204, b"", preflight
            else:
                endpoint, parameters, route = self._router.find(request.method, _path(request))
                refused = refusal_of(request)
                if refused is not None and endpoint.name not in _HEALTH:
                    raise refused.error
                check_media_type(request.method, headers, body=request.body_exists)
                call = HttpCall(
                    request, dialect, parameters, self._limits, self._aside, self._body_s, self._site, visit, unreadable
                )
                call.request_id = request_id
                with self._place(request, visit, endpoint):
                    answer = await self._door.through(call, endpoint)
                    if isinstance(answer, StreamedResponse):
                        with self._door.streaming(call):
                            streamed = await answer.serve(request, _headers(request_id, dialect, cors))
                        self._answered(request, call, visit, route, streamed.status, began, request_id)
                        return streamed
                status, body, more = answer.status, shown_body(call, answer), answer.headers
        except OjsError as error:
            status, body, more = refusal(error, request_id)
        except Exception as error:
            if isinstance(error, ConnectionError) and has_left(request):  # what is answered goes nowhere
                log.debug("client left", request_id=request_id, path=request.path)
            else:
                shown = certificate_of(request)
                by = {} if shown is None else {"client_certificate": shown.subject}
                log.exception("request failed", request_id=request_id, method=request.method, path=request.path, **by)
            status, body, more = refusal(OjsError("backend_error", "the server failed to handle the request"), request_id)
        if self._site.prefix:
            more = tuple((name, self._below(value) if name == hdrs.LOCATION else value) for name, value in more)
        more = (*more, *cors)
        if len(body) >= LARGE_BYTES and (hdrs.VARY, hdrs.ACCEPT_ENCODING) not in more:  # else it is as the client takes it
            body, more = await self._packed(body, headers.get(hdrs.ACCEPT_ENCODING), more)
        self._answered(request, call, visit, route, status, began, request_id)
        response = Answer(status, body, _headers(request_id, dialect, more).items())
        if refusal_of(request) is not None or self.closing():
            response.force_close()
        return response

    def _visit(self, request: web.BaseRequest) -> Visit | None:
        """Return what a trusted proxy says of the client; None where none has sent the request."""
        proxies = self._proxies
        if proxies is None or not proxies.trusts(peer := request.remote or ""):
            return None
        headers = request.headers
        return proxies.visit(peer, secure=request.secure, host=headers.get(HOST), headers=headers)

    def _place(self, request: web.BaseRequest, visit: Visit | None, endpoint: Endpoint) -> AbstractContextManager[None]:
        """Return a place among the connections of a proxy's client. Health checks need none."""
        return _NO_PLACE if visit is None or endpoint.name in _HEALTH else visiting(request, visit.address)

    def _admitted(self, request: web.BaseRequest, host: str | None) -> tuple[tuple[str, str], ...]:
        """Return the headers of `Browsers.admit`; public files go to all pages. Raises permission_denied."""
        try:
            return self._browsers.admit(request.method, request.headers, host)
        except OjsError as refused:
            with suppress(OjsError):
                if self._router.find(request.method, _path(request))[0].public:
                    return ()
            raise refused from None

    def _below(self, location: str) -> str:
        """Return an address of this server as clients reach it."""
        return self._site.prefix + location if location.startswith("/") else location

    def _answered(
        self,
        request: web.BaseRequest,
        call: HttpCall | None,
        visit: Visit | None,
        route: str,
        status: int,
        began: float,
        request_id: str,
    ) -> None:
        seconds = time.perf_counter() - began
        metrics.answered(request.method, route, status, seconds)
        if self._log_request is not None:
            self._log_request(AnsweredRequest(request, call, visit, route, status, seconds, request_id))

    async def _packed(
        self, body: bytes, accepted: str | None, more: tuple[tuple[str, str], ...]
    ) -> tuple[bytes, tuple[tuple[str, str], ...]]:
        """A large answer as its client takes it, with its headers; as it is if it would have to wait for other large work."""
        others = [value for name, value in more if name == hdrs.VARY]
        more = (*more, (hdrs.VARY, ", ".join((*others, hdrs.ACCEPT_ENCODING))))
        if accepted is None or self._aside.busy or not accepts_gzip(accepted):
            return body, more
        return await self._aside.run(len(body), compressed, body), (*more, (hdrs.CONTENT_ENCODING, "gzip"))


def require_supported(dialect: Dialect, version: str | None) -> None:
    """Raises unsupported for a version of Open Job Spec that isn't spoken here."""
    if not dialect.supported:
        raise OjsError("unsupported", f"OJS-Version {shown(version)} is not supported; this server speaks {SPOKEN}")


def refusal(error: OjsError, request_id: str) -> tuple[int, bytes, tuple[tuple[str, str], ...]]:
    """An error as an answer: status, body and headers."""
    headers: list[tuple[str, str]] = list(error.headers)
    if error.retry_after is not None:
        headers.append((hdrs.RETRY_AFTER, str(error.retry_after)))
    if error.allow is not None:
        headers.append((hdrs.ALLOW, error.allow))
    if (most := error.details.get("max_batch_size")) is not None:
        headers.append(("X-OJS-Max-Batch-Size", str(most)))
    return error.info.status, error_body(error, request_id), tuple(headers)


def _path(request: web.BaseRequest) -> str:
    raw = request.raw_path
    if raw.startswith("/"):
        return raw.partition("?")[0]
    return request.rel_url.raw_path  # of an absolute-form target


def _headers(request_id: str, dialect: Dialect, more: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """What every answer carries; `more` may take the place of a part of it."""
    headers: dict[str, str] = {
        hdrs.CONTENT_TYPE: dialect.content_type,
        _OJS_VERSION: SPOKEN,
        _REQUEST_ID: request_id,
        _NOSNIFF: "nosniff",
        hdrs.CACHE_CONTROL: _NO_STORE,
        hdrs.SERVER: "ojs-nats",
    }
    headers.update(more)
    return headers


class _Protocol(GuardedHandler):
    """A connection with OJS errors for what can't be parsed."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, BadHttpMethod):
            error = OjsError("method_not_allowed", "the request's method is not one of HTTP", allow=METHODS)
        elif isinstance(exc, LineTooLong) and exc.args[1] == MOST_TARGET:
            error = OjsError("uri_too_long", f"the request's target has more than {MOST_TARGET} bytes")
        elif status < 500:
            error = OjsError("invalid_payload", f"the request is not valid HTTP{said_by_parser(message)}")
        else:
            log.error("request failed", exc_info=exc)
            error = OjsError("backend_error", "the server failed to handle the request")
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun, so no other can be sent")
        request_id = new_request_id()
        answered, body, more = refusal(error, request_id)
        response = Answer(answered, body, _headers(request_id, dialect_of(None, None, None, None), more).items())
        response.force_close()
        return response


class _Server(web.Server):
    """aiohttp's bare server: no application, router or middleware between the connection and `Edge`."""

    def __init__(self, edge: Edge, connections: Connections, request_of: Callable[..., web.BaseRequest]) -> None:
        super().__init__(edge.handle, request_factory=request_of)
        self._limits = connections

    def __call__(self) -> web.RequestHandler:
        return _Protocol(self, self._limits, loop=self._loop)


def server(edge: Edge, limits: PayloadLimits, connections: Connections) -> web.Server:
    """The aiohttp server in front of `edge`, for the running loop. Bodies arrive as sent: `Call` unpacks them."""
    loop = asyncio.get_running_loop()

    def request_of(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        headers, unreadable = readable_headers(message.headers)
        if unreadable:
            message = message._replace(headers=headers)
        most, client = limits.max_body_bytes, cast("GuardedHandler", protocol).client
        request = web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=most, remote=client)
        if unreadable:
            request[UNREADABLE] = unreadable
        return request

    return _Server(edge, connections, request_of)
