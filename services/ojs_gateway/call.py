"""One HTTP request as handlers see it, and their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from aiohttp import hdrs, web

from ojs_gateway.compression import beyond, decompressed
from ojs_nats.errors import OjsError, invalid, too_large
from ojs_nats.wire.limits import Limits
from ojs_nats.wire.quirks import Dialect, accepts_media_type

__all__ = ["Answer", "Call", "Streamed"]

_BODY_TIMEOUT_S: Final = 30.0
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Answer(NamedTuple):
    """A status, a JSON body and headers beyond those that every answer has."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Streamed(NamedTuple):
    """An answer that goes on: `serve` gets the request and the headers that every answer has, and sends it itself."""

    serve: Callable[[web.BaseRequest, Mapping[str, str]], Awaitable[web.StreamResponse]]


class Call:
    """A request on its way through a handler."""

    __slots__ = ("_limits", "_request", "dialect", "parameters")

    def __init__(self, request: web.BaseRequest, dialect: Dialect, parameters: tuple[str, ...], limits: Limits) -> None:
        self._request = request
        self._limits = limits
        self.dialect = dialect
        self.parameters = parameters

    @property
    def gone(self) -> bool:
        """Whether the client has closed the connection, so that no answer can reach it."""
        transport = self._request.transport
        return transport is None or transport.is_closing()

    @property
    def queries(self) -> Mapping[str, str]:
        """The query string's members."""
        return self._request.query

    def header(self, name: str) -> str | None:
        """One of the request's headers."""
        return self._request.headers.get(name)

    def query(self, name: str) -> str | None:
        """One member of the query string."""
        return self._request.query.get(name)

    async def body(self) -> bytes:
        """The decompressed body; empty if there is none.

        Raises envelope_too_large before anything beyond the limit is read, unsupported_compression, request_timeout, and
        invalid_request for a media type that is not JSON.
        """
        request = self._request
        headers = request.headers
        limit = self._limits.max_body_bytes
        length = request.content_length
        if length is not None and length > limit:
            raise too_large("envelope_too_large", "the request body", length, limit)
        if hdrs.EXPECT in headers:
            await request.writer.write(_CONTINUE)
            request.writer.output_size = 0  # it is not part of the answer
        body = await self._read(limit)
        if not body:
            return body
        content_type = headers.get(hdrs.CONTENT_TYPE)
        if content_type is not None and not accepts_media_type(content_type):
            raise invalid(
                "Content-Type",
                f"Content-Type is {content_type[:80]!r}; send application/openjobspec+json or application/json",
            )
        encoding = headers.get(hdrs.CONTENT_ENCODING)
        return body if encoding is None else decompressed(body, encoding, limit)

    async def _read(self, limit: int) -> bytes:
        request = self._request
        try:
            if request.content.is_eof():
                return await request.read()
            async with asyncio.timeout(_BODY_TIMEOUT_S):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise beyond(limit) from None
        except web.RequestPayloadError as error:
            raise OjsError("invalid_payload", f"the request body is broken: {error}") from None
        except TimeoutError:
            raise OjsError("request_timeout", f"the request body did not arrive within {_BODY_TIMEOUT_S:.0f} s") from None
