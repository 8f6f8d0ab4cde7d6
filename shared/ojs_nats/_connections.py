"""Connections over HTTP that are kept, by aiohttp: imported when the first one is opened."""

from __future__ import annotations

import asyncio
import os
import ssl
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, cast

import aiohttp
from yarl import URL

from ojs_nats._transport import Answer, NotNow, error_of, in_time

if TYPE_CHECKING:
    from ojs_nats._lookups import Lookups
    from ojs_nats._timings import HttpTimings
    from ojs_nats._tls import Trust

_LARGE: Final = 2**20
"""Bytes of a body that aiohttp warns of."""
_BUFFER: Final = 2**20
"""Bytes of an event, at most."""


class _Connector(aiohttp.TCPConnector):
    """A connector that counts as closed in a process that was forked.

    Its connections are the parent's there, which closes them: what aiohttp says of connections that nobody has closed
    would be wrong.
    """

    def __init__(self, resolver: aiohttp.abc.AbstractResolver, kept_s: float) -> None:
        super().__init__(limit=0, keepalive_timeout=kept_s, resolver=resolver)
        self._process = os.getpid()

    @property
    def closed(self) -> bool:
        """Whether it is closed. A session is if its connector is."""
        return super().closed or self._inherited()

    def _inherited(self, process: Callable[[], int] = os.getpid) -> bool:
        return self._process != process()

    def __del__(self, _warnings: Any = warnings) -> None:
        if not self._inherited():
            super().__del__(_warnings)


class Connections:
    """Connections of the running event loop to one server, made as they are needed."""

    def __init__(self, headers: Mapping[str, str], trust: Trust | None, lookups: Lookups, timings: HttpTimings) -> None:
        """Make none yet.

        Args:
            headers: What each request has.
            trust: What encrypts connections to https://; None for http://.
            lookups: What looks up the names of hosts.
            timings: How long they wait.

        """
        self._timings = timings
        # The resolver calls the two methods that lookups have, and no others of a loop.
        resolver = aiohttp.ThreadedResolver(cast("asyncio.AbstractEventLoop", lookups))
        self._session = aiohttp.ClientSession(connector=_Connector(resolver, timings.kept_s), headers=headers)
        self._trust = trust

    async def close(self) -> None:
        """Close all of them."""
        await self._session.close()

    async def answer(
        self,
        method: str,
        address: str,
        asked: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> Answer:
        """Return what a server answers within a time. Raises NotNow.

        Args:
            method: Such as `POST`.
            address: The URL without its query, encoded.
            asked: The parameters of the query.
            body: What is sent, None for nothing.
            headers: Those of this request.
            seconds: How long the answer may take.

        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timings.connect_s)

        async def answered() -> Answer:
            url, data = _url(address, asked), _as_sent(body)
            request = self._session.request(method, url, data=data, headers=headers, timeout=timeout, ssl=self._tls())
            async with request as answer:
                return Answer(answer.status, await answer.read(), answer.headers.get("Retry-After"))

        try:
            return await in_time(answered(), seconds, self._timings.tries.unread_s)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise NotNow(_reason(error), carried_out=False) from error
        except aiohttp.ClientConnectorError as error:
            raise NotNow(_reason(error), carried_out=False, unreachable=True) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NotNow(_reason(error), carried_out=True) from error

    @asynccontextmanager
    async def stream(self, address: str, asked: Mapping[str, str]) -> AsyncIterator[aiohttp.StreamReader]:
        """Read an answer that goes on. Raises NotNow, RefusedError."""
        waits = self._timings
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=waits.connect_s, sock_read=waits.read_s)
        url = _url(address, asked)
        try:
            async with self._session.get(url, timeout=timeout, read_bufsize=_BUFFER, ssl=self._tls()) as answer:
                if answer.status != 200:
                    raise error_of(Answer(answer.status, await answer.read(), answer.headers.get("Retry-After")))
                yield answer.content
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NotNow(_reason(error), carried_out=False) from error

    def _tls(self) -> ssl.SSLContext | bool:
        """Return what a connection is made with, if one has to be. True is aiohttp's own, unused by http://."""
        return True if self._trust is None else self._trust.context()


def _url(address: str, asked: Mapping[str, str]) -> URL:
    url = URL(address, encoded=True)
    return url.with_query(asked) if asked else url


def _reason(error: BaseException) -> str:
    """Return why there is no answer, in words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {error.host} isn't known"
    if isinstance(error, aiohttp.ClientConnectorSSLError) and "WRONG_VERSION" in str(error):
        return "it speaks http, not https"
    if type(error) is aiohttp.ClientConnectorError:
        number = error.os_error.errno
        return os.strerror(number).lower() if number else "the connection was refused"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed before the answer"
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer came in time"
    return str(error) or type(error).__name__


def _as_sent(body: bytes | None) -> bytes | BytesIO | None:
    """Return the body as aiohttp sends it: a large one in parts, between which the loop goes on."""
    return body if body is None or len(body) < _LARGE else BytesIO(body)
