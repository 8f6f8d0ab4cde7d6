"""A request that came over HTTP."""

from __future__ import annotations

import asyncio
import re
from typing import Final, NamedTuple

from aiohttp import hdrs, web

from ojs_engine.access.client_certificates import ClientCertificate
from ojs_engine.api.call import Call
from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.errors import OjsError, too_large
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.readable import ALL_READABLE, unreadable_header
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE
from ojs_engine.wire.dialects.readers import Dialect
from ojs_engine.wire.queries import Queries, parse_queries
from ojs_gateway.http.compression import beyond, unpacked
from ojs_runtime.browsers import HOST, port_of, require_own_page
from ojs_runtime.connections import certificate_of, has_left
from ojs_runtime.proxies import Visit

UNREADABLE: Final = web.RequestKey("unreadable", frozenset[str])
"""The names of a request's headers that weren't UTF-8, in small letters. It is there if there are some."""
OLD_COOKIE: Final = "ojs_session"
"""The name of sessions' cookies before it said whose they are."""
_SAID: Final = re.compile(r"(?:[0-9]+, message:\s*)?([A-Z][A-Za-z0-9 ,/-]*)", re.ASCII)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


def said_by_parser(message: str | None) -> str:
    """What the parser complains of, without the bytes that it shows: a key may be among them."""
    found = _SAID.match(message or "")
    return "" if found is None else f": {found[1].strip()}"


class Site(NamedTuple):
    """How a gateway is reached: its namespace, and the path that clients put before its own."""

    namespace: str = DEFAULT_NAMESPACE
    prefix: str = ""

    def cookie(self, host: str | None) -> str:
        """Return the name of the session's cookie. Browsers send the cookies of a host to all of its ports."""
        port = port_of(host or "")
        return f"{OLD_COOKIE}_{self.namespace}{f'_{port}' if port else ''}{self.prefix.replace('/', '.')}"


_BY_ITSELF: Final = Site()


class HttpCall(Call):
    """The client is gone once it has closed the connection; nobody is told whether an answer arrived."""

    __slots__ = ("_body_s", "_queries", "_request", "_unreadable", "_visit", "site")

    def __init__(
        self,
        request: web.BaseRequest,
        dialect: Dialect,
        parameters: tuple[str, ...],
        limits: PayloadLimits,
        aside: LargeBodies,
        body_s: float,
        site: Site = _BY_ITSELF,
        visit: Visit | None = None,
        unreadable: frozenset[str] = ALL_READABLE,
    ) -> None:
        super().__init__(dialect, parameters, limits, aside)
        self._request = request
        self._body_s = body_s
        self._unreadable = unreadable
        self._queries: Queries | None = None
        self._visit = visit
        """The client as a trusted proxy names it; None where none does."""
        self.site = site

    @property
    def left(self) -> bool:
        return has_left(self._request)

    @property
    def client_certificate(self) -> ClientCertificate | None:
        return certificate_of(self._request)

    @property
    def address(self) -> str:
        return self._request.remote or "unknown" if self._visit is None else self._visit.address

    @property
    def secure(self) -> bool:
        """Whether the browser has spoken TLS, to this server or to a proxy that is believed."""
        return self._request.secure if self._visit is None else self._visit.secure

    @property
    def host(self) -> str | None:
        """The host that the client has asked for."""
        return self._request.headers.get(HOST) if self._visit is None else self._visit.host

    @property
    def cookie_name(self) -> str:
        """The name of the cookie of a session here."""
        return self.site.cookie(self.host)

    @property
    def shown_session(self) -> str | None:
        return self._request.cookies.get(self.cookie_name) if hdrs.COOKIE in self._request.headers else None

    @property
    def session(self) -> str | None:
        headers = self._request.headers
        found = self.shown_session
        if found is not None:
            require_own_page(self._request.method, headers, self.host)
        return found

    @property
    def old_session(self) -> str | None:
        return self._request.cookies.get(OLD_COOKIE)

    def session_cookie(self, session: str, lasts_s: int, *, old: bool = False) -> tuple[str, str]:
        name, path = (OLD_COOKIE, "/") if old else (self.cookie_name, self.site.prefix or "/")
        secure = "; Secure" if self.secure else ""
        return ("Set-Cookie", f"{name}={session}; Path={path}; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}")

    def hang_up(self) -> None:
        if (transport := self._request.transport) is not None:
            transport.abort()  # close() waits for a client that reads nothing any more

    @property
    def queries(self) -> Queries:
        if self._queries is None:
            self._queries = parse_queries(self._request.rel_url.raw_query_string)
        return self._queries

    def header(self, name: str) -> str | None:
        if name.lower() in self._unreadable:
            raise unreadable_header(name)
        return self.remark(name)

    def remark(self, name: str) -> str | None:
        values = self._request.headers.getall(name, None)
        return None if values is None else ", ".join(values)

    async def body(self, limit: int) -> bytes:
        request = self._request
        headers = request.headers
        length = request.content_length
        if length is not None and length > limit:
            raise too_large("envelope_too_large", "the request body", length, limit)
        if hdrs.EXPECT in headers:
            await request.writer.write(_CONTINUE)
            request.writer.output_size = 0  # it is not part of the answer
        body = await self._read(limit)
        encoding = headers.get(hdrs.CONTENT_ENCODING)
        if encoding is None or not body:
            return body
        return await unpacked(self._aside, body, encoding, limit)

    async def _read(self, limit: int) -> bytes:
        request = self._request
        try:
            if request.content.is_eof():
                body = request.content.read_nowait()
            else:
                async with asyncio.timeout(self._body_s):
                    body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise beyond(limit) from None
        except web.RequestPayloadError as error:
            raise OjsError("invalid_payload", f"the request body is broken{said_by_parser(str(error))}") from None
        except TimeoutError:
            raise OjsError("request_timeout", f"the request body did not arrive within {self._body_s:.0f} s") from None
        if len(body) > limit:
            raise too_large("envelope_too_large", "the request body", len(body), limit)
        return body
