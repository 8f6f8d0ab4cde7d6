"""Requests over HTTP, on connections that are kept."""

from __future__ import annotations

import asyncio
import os
import random
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from ojs_nats._json import decoded
from ojs_nats._lookups import Lookups
from ojs_nats._operations import STREAM_EVENTS, STREAM_JOB_EVENTS, Operation, Request
from ojs_nats._sse import frames
from ojs_nats._transport import Answer, EventFilter, NotNow, Transport, error_of, in_time
from ojs_nats.errors import UnavailableError
from ojs_nats.models.events import Event
from ojs_nats.tls import HTTPS, Tls, Trust

_CONNECT_S: Final = 10.0
_READ_S: Final = 30.0
_ANSWER_S: Final = 30.0
_RECONNECT_S: Final = (0.1, 0.5)
_LARGE: Final = 2**20
"""Bytes of a body that aiohttp warns of."""
_BUFFER: Final = 2**20
"""Bytes of an event, at most."""
_BESIDE: Final = frozenset({"job.state_changed", "missed", "reset"})
"""What says the same as the event that it comes with."""
_BROKEN_OFF: Final = frozenset({"server.shutdown", "error"})
_NAME: Final = re.compile(r"\{(\w+)\}")


class HttpTransport(Transport):
    """To `http://…` and `https://…`."""

    def __init__(
        self,
        url: str,
        *,
        retry_for_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
        tls: Tls | ssl.SSLContext | None = None,
    ) -> None:
        """Raises ValueError for files of TLS that can't be used."""
        super().__init__(url, retry_for_s=retry_for_s)
        self._headers = headers or {}
        self._trust = Trust(tls) if url.startswith(HTTPS) else None
        self._keeper: AsyncGenerator[aiohttp.ClientSession] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.aclose()

    async def once(self, request: Request, body: bytes | None) -> Answer:
        session = await self._open()
        url = self._address(request.operation, request.parameters)
        answer_s = _ANSWER_S if request.answer_s is None else request.answer_s
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)

        async def answered() -> Answer:
            method, data = request.operation.method, _as_sent(body)
            asked = session.request(method, url, data=data, headers=request.headers, timeout=timeout, ssl=self._tls())
            async with asked as answer:
                return Answer(answer.status, await answer.read(), answer.headers.get("Retry-After"))

        try:
            return await in_time(answered(), answer_s)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise NotNow(_reason(error), carried_out=False) from error
        except aiohttp.ClientConnectorError as error:
            raise NotNow(_reason(error), carried_out=False, unreachable=True) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NotNow(_reason(error), carried_out=True) from error

    async def events(self, wanted: EventFilter) -> AsyncGenerator[Event]:
        after = wanted.after or await self.cursor_now()
        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            connected_at: float | None = None
            try:
                async with self._followed(wanted, after) as stream:
                    connected_at = loop.time()
                    async for kind, data, cursor in frames(stream):
                        if kind in _BROKEN_OFF:
                            raise NotNow(f"the server has told of {kind}", carried_out=False)
                        failing_since, after = None, cursor or after
                        if kind.startswith("system."):
                            yield _notice(kind, data, after)
                        elif kind not in _BESIDE:
                            yield msgspec.structs.replace(decoded(data, Event), cursor=after)
                if wanted.job_id is not None:
                    return
            except NotNow as reason:
                now = loop.time()
                lasted = connected_at is not None and now - connected_at > self._retry_for_s
                if failing_since is None or lasted:
                    failing_since = now
                elif now - failing_since > self._retry_for_s:
                    raise UnavailableError(f"events at {self.shown}: {reason}") from reason.__cause__
            await asyncio.sleep(random.uniform(*_RECONNECT_S))  # noqa: S311

    @asynccontextmanager
    async def _followed(self, wanted: EventFilter, after: str) -> AsyncIterator[aiohttp.StreamReader]:
        """One connection. Raises NotNow, RefusedError."""
        session = await self._open()
        asked = {"types": wanted.types, "queues": wanted.queues, "job_types": wanted.job_types}
        said = {name: ",".join(values) for name, values in asked.items() if values} | {"last_event_id": after}
        if wanted.job_id is None:
            url = self._address(STREAM_EVENTS, said)
        else:
            url = self._address(STREAM_JOB_EVENTS, {"job_id": wanted.job_id, **said})
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_READ_S)
        try:
            async with session.get(url, timeout=timeout, read_bufsize=_BUFFER, ssl=self._tls()) as answer:
                if answer.status != 200:
                    raise error_of(Answer(answer.status, await answer.read(), answer.headers.get("Retry-After")))
                yield answer.content
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NotNow(_reason(error), carried_out=False) from error

    def _address(self, operation: Operation, parameters: Mapping[str, str]) -> URL:
        path = _NAME.sub(lambda name: quote(parameters[name[1]], safe=""), operation.place)
        placed = _NAME.findall(operation.path)
        asked = {name: value for name, value in parameters.items() if name not in placed}
        url = URL(self.url + path, encoded=True)
        return url.with_query(asked) if asked else url

    def _tls(self) -> ssl.SSLContext | bool:
        """What a connection is made with, if one has to be; True is aiohttp's own, which http:// has no use for."""
        return True if self._trust is None else self._trust.context()

    async def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._keeper = self._kept_session()
            self._session = await anext(self._keeper)
        return self._session

    async def _kept_session(self) -> AsyncGenerator[aiohttp.ClientSession]:
        """A session that is closed with its loop, as `asyncio.run` closes generators: scripts need not think of it."""
        # OJS-Version would ask for what the official SDKs read, which differs from the API's description.
        headers = {"Content-Type": "application/json", "User-Agent": "ojs-nats-python", **self._headers}
        lookups = Lookups()
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, resolver=lookups.resolver())
        try:
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
                yield session
        finally:
            self._session = self._keeper = None  # they would keep the loop, too
            lookups.close()


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


def _notice(kind: str, data: bytes, cursor: str) -> Event:
    """What the server says of the stream itself, such as that events are gone (`system.gap`)."""
    return Event(id="", type=kind, time=datetime.now(UTC), data=decoded(data, dict[str, Any]), cursor=cursor)
