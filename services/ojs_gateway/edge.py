"""Where HTTP ends: from a request to the handler's answer with its headers, and from any failure to the error envelope."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog
from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import BadHttpMethod
from aiohttp.http_parser import RawRequestMessage
from multidict import istr

from ojs_gateway.call import Answer, Call, Streamed
from ojs_gateway.router import Router
from ojs_nats import metrics, tracing
from ojs_nats.errors import OjsError
from ojs_nats.wire.errors import error_body
from ojs_nats.wire.ids import new_request_id, request_id_of
from ojs_nats.wire.limits import Limits
from ojs_nats.wire.quirks import OJS_TYPE, Dialect, dialect_of

__all__ = ["Edge", "server"]

log = structlog.get_logger(__name__)

_OJS_VERSION: Final = istr("OJS-Version")
_REQUEST_ID: Final = istr("X-Request-Id")
_NOSNIFF: Final = istr("X-Content-Type-Options")
_NO_ROUTE: Final = "none"
_SPOKEN: Final = "1.0"
_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
"""Those of all paths together, for a request whose path can't be known."""
_LINGERING_S: Final = 2.0
"""How long the rest of a refused body is read and thrown away, so that the client sees the refusal."""


class Edge:
    """Turns requests into answers; nothing that goes wrong gets past it."""

    def __init__(self, router: Router, limits: Limits) -> None:
        self._router = router
        self._limits = limits
        self.closing = False
        """Whether each answer is the last on its connection, and says so: else a client that asks again at once would be
        cut off without an answer."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        route = _NO_ROUTE
        headers = request.headers
        tracing.answering(headers)
        request_id = request_id_of(headers.get(_REQUEST_ID))
        version = headers.get(_OJS_VERSION)
        dialect = dialect_of(headers.get(hdrs.USER_AGENT), headers.get(hdrs.ACCEPT), version)
        try:
            if not dialect.supported:
                raise OjsError("unsupported", f"OJS-Version {version!r} is not supported; this server speaks {_SPOKEN}")
            handler, parameters, route = self._router.find(request.method, _path(request))
            answer = await handler(Call(request, dialect, parameters, self._limits))
            if isinstance(answer, Streamed):
                return await answer.serve(request, _headers(request_id, dialect))
        except OjsError as error:
            answer = refusal(error, request_id)
        except Exception as error:
            if isinstance(error, ConnectionError) and request.transport is None:  # what is answered goes nowhere
                log.debug("client left", request_id=request_id, path=request.path)
            else:
                log.exception("request failed", request_id=request_id, method=request.method, path=request.path)
            answer = refusal(OjsError("backend_error", "the server failed to handle the request"), request_id)
        metrics.answered(request.method, route, answer.status, time.perf_counter() - began)
        response = _response(answer, request_id, dialect)
        if self.closing:
            response.force_close()
        return response


def refusal(error: OjsError, request_id: str) -> Answer:
    """An error as an answer."""
    headers: list[tuple[str, str]] = list(error.headers)
    if error.retry_after is not None:
        headers.append((hdrs.RETRY_AFTER, str(error.retry_after)))
    if error.allow is not None:
        headers.append((hdrs.ALLOW, error.allow))
    if (most := error.details.get("max_batch_size")) is not None:
        headers.append(("X-OJS-Max-Batch-Size", str(most)))
    return Answer(error.info.status, error_body(error, request_id), tuple(headers))


def _path(request: web.BaseRequest) -> str:
    raw = request.raw_path
    return raw.partition("?")[0] if raw.startswith("/") else request.path  # the latter for absolute-form targets


def _response(answer: Answer, request_id: str, dialect: Dialect) -> web.Response:
    headers = _headers(request_id, dialect)
    headers.update(answer.headers)
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def _headers(request_id: str, dialect: Dialect) -> dict[str, str]:
    """What every answer carries."""
    return {
        hdrs.CONTENT_TYPE: dialect.content_type,
        _OJS_VERSION: _SPOKEN,
        _REQUEST_ID: request_id,
        _NOSNIFF: "nosniff",
        hdrs.SERVER: "ojs-nats",
    }


class _Protocol(web.RequestHandler):
    """aiohttp's connection, with OJS errors for what it can't parse."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, BadHttpMethod):
            error = OjsError("method_not_allowed", "the request's method is not one of HTTP", allow=_METHODS)
        elif status < 500:
            error = OjsError("invalid_payload", f"the request is not valid HTTP: {' '.join((message or '').split())}")
        else:
            log.error("request failed", exc_info=exc)
            error = OjsError("backend_error", "the server failed to handle the request")
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun, so no other can be sent")
        request_id = new_request_id()
        response = _response(refusal(error, request_id), request_id, Dialect(OJS_TYPE, flat_job=False, supported=True))
        response.force_close()
        return response


class _Server(web.Server):
    """aiohttp's bare server: no application, router or middleware between the connection and `Edge`."""

    def __call__(self) -> web.RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)


def server(edge: Edge, limits: Limits) -> web.Server:
    """The aiohttp server in front of `edge`, for the running loop. Bodies arrive as sent: `Call` unpacks them."""
    loop = asyncio.get_running_loop()

    def request_of(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limits.max_body_bytes)

    return _Server(edge.handle, request_factory=request_of, auto_decompress=False, access_log=None, lingering_time=_LINGERING_S)
