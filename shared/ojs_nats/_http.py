"""Requests over HTTP, on connections that are kept."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

import aiohttp
from yarl import URL

from ojs_nats._errors import Unavailable, refusal
from ojs_nats._operations import Operation, Request
from ojs_nats._transport import Answer, NotNow, Transport

_PREFIX: Final = "/ojs/v1"
_CONNECT_S: Final = 10.0
_READ_S: Final = 30.0
_NAME: Final = re.compile(r"\{(\w+)\}")


class HttpTransport(Transport):
    """To `http://…` and `https://…`."""

    def __init__(self, url: str, *, patience_s: float = 30.0) -> None:
        super().__init__(url, patience_s=patience_s)
        self._keeper: AsyncGenerator[aiohttp.ClientSession] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.aclose()

    async def once(self, request: Request, body: bytes | None) -> Answer:
        session = await self._open()
        url = self._address(request.operation, request.parameters)
        timeout = aiohttp.ClientTimeout(total=request.answer_s, sock_connect=_CONNECT_S)
        try:
            async with session.request(
                request.operation.method, url, data=body, headers=request.headers, timeout=timeout
            ) as answer:
                return Answer(answer.status, await answer.read(), answer.headers.get("Retry-After"))
        except aiohttp.ClientConnectorError as error:
            raise NotNow(error, carried_out=False) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NotNow(error, carried_out=True) from error

    @asynccontextmanager
    async def lines(self, operation: Operation, parameters: Mapping[str, str]) -> AsyncIterator[aiohttp.StreamReader]:
        """What the server streams. Raises Refused, Unavailable."""
        session = await self._open()
        url = self._address(operation, parameters)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_READ_S)
        try:
            async with session.get(url, timeout=timeout) as answer:
                if answer.status != 200:
                    raise refusal(answer.status, await answer.read(), answer.headers.get("Retry-After"))
                yield answer.content
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{operation.name} at {self.url}: {str(error) or type(error).__name__}") from error

    def _address(self, operation: Operation, parameters: Mapping[str, str]) -> URL:
        path = _NAME.sub(lambda name: quote(parameters[name[1]], safe=""), operation.path)
        placed = _NAME.findall(operation.path)
        asked = {name: value for name, value in parameters.items() if name not in placed}
        url = URL(self.url + _PREFIX + path, encoded=True)
        return url.with_query(asked) if asked else url

    async def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._keeper = self._kept_session()
            self._session = await anext(self._keeper)
        return self._session

    async def _kept_session(self) -> AsyncGenerator[aiohttp.ClientSession]:
        """A session that is closed with its loop, as `asyncio.run` closes generators: scripts need not think of it."""
        headers = {"Content-Type": "application/json", "OJS-Version": "1.0"}
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        try:
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
                yield session
        finally:
            self._session = self._keeper = None  # they would keep the loop, too
