"""One HTTP request as handlers see it, and their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from aiohttp import hdrs, web
from msgspec import Struct

from ojs_core.base.errors import OjsError, too_large
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.wire.dialects.readers import Dialect
from ojs_gateway.http.compression import beyond, decompressed
from ojs_gateway.http.large_bodies import LARGE_BYTES, LargeBodies

P = ParamSpec("P")
T = TypeVar("T")

_BODY_TIMEOUT_S: Final = 30.0
_UNPACKED_AT_ONCE: Final = 1_024
"""The largest compressed body that is unpacked where it arrives."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Response(NamedTuple):
    """A status, an answer and headers beyond those that every answer has. Bytes are JSON, the same for all readers."""

    status: int
    answer: bytes | Struct
    headers: tuple[tuple[str, str], ...] = ()


class StreamedResponse(NamedTuple):
    """An answer that goes on: `serve` gets the request and the headers that every answer has, and sends it itself."""

    serve: Callable[[web.BaseRequest, Mapping[str, str]], Awaitable[web.StreamResponse]]


class Call:
    """A request on its way through a handler."""

    __slots__ = ("_aside", "_limits", "_request", "dialect", "parameters")

    def __init__(
        self, request: web.BaseRequest, dialect: Dialect, parameters: tuple[str, ...], limits: PayloadLimits, aside: LargeBodies
    ) -> None:
        self._request = request
        self._limits = limits
        self._aside = aside
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

    async def read(self, parse: Callable[Concatenate[bytes, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The body of a request without jobs, as `parse(body, …)` reads it. Raises what `body` and `parse` raise."""
        return await self.parsed(await self.body(self._limits.max_control_bytes), parse, *args, **kwargs)

    async def read_jobs(self, parse: Callable[Concatenate[bytes, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for jobs, workflows and results, which may be large."""
        return await self.parsed(await self.body(self._limits.max_body_bytes), parse, *args, **kwargs)

    async def parsed(self, body: bytes, parse: Callable[Concatenate[bytes, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`parse(body, …)`, beside the event loop if the body is large; for what `args` say of the moment after it arrived."""
        return await self._aside.run(len(body), parse, body, *args, **kwargs)

    async def body(self, limit: int) -> bytes:
        """The decompressed body of at most `limit` bytes; empty if there is none.

        Raises envelope_too_large before anything beyond the limit is read, unsupported_compression, request_timeout.
        """
        request = self._request
        headers = request.headers
        length = request.content_length
        if length is not None and length > limit:
            raise too_large("envelope_too_large", "the request body", length, limit)
        if hdrs.EXPECT in headers:
            await request.writer.write(_CONTINUE)
            request.writer.output_size = 0  # it is not part of the answer
        body = await self._read(limit)
        if not body:
            return body
        encoding = headers.get(hdrs.CONTENT_ENCODING)
        if encoding is None:
            return body
        # A byte may be a thousand when it is unpacked.
        return await self._aside.run(LARGE_BYTES if len(body) > _UNPACKED_AT_ONCE else 0, decompressed, body, encoding, limit)

    async def _read(self, limit: int) -> bytes:
        request = self._request
        try:
            if request.content.is_eof():
                body = request.content.read_nowait()
            else:
                async with asyncio.timeout(_BODY_TIMEOUT_S):
                    body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise beyond(limit) from None
        except web.RequestPayloadError as error:
            raise OjsError("invalid_payload", f"the request body is broken: {error}") from None
        except TimeoutError:
            raise OjsError("request_timeout", f"the request body did not arrive within {_BODY_TIMEOUT_S:.0f} s") from None
        if len(body) > limit:
            raise too_large("envelope_too_large", "the request body", len(body), limit)
        return body
