"""Requests to a server over HTTP: connections that are kept, and tries that are repeated while that is safe."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec

from ojs_nats._errors import OjsError, Unavailable, refusal

_PREFIX: Final = "/ojs/v1"
_FIRST_PAUSE_S: Final = 0.1
_LAST_PAUSE_S: Final = 5.0
_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 30.0
_AGAIN: Final = frozenset({408, 502, 503, 504})
"""Answers that say that the server, or what is before it, can't work now."""


class HttpTransport:
    """For one event loop. `patience_s` is for how long a request is tried, while nobody answers or who answers can't work."""

    def __init__(self, url: str, *, patience_s: float = 30.0) -> None:
        self._url = url.rstrip("/") + _PREFIX
        self._patience_s = patience_s
        self._keeper: AsyncGenerator[aiohttp.ClientSession] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.aclose()

    async def request(
        self, method: str, path: str, body: Any = None, *, answer_s: float = _ANSWER_S, patience_s: float | None = None
    ) -> bytes:
        """The answer's body. The request may be carried out more than once, so it has to say the same thing then.

        Raises Refused by the server's code, Unavailable.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._patience_s if patience_s is None else patience_s)
        sent = None if body is None else msgspec.json.encode(body)
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return await self._once(method, path, sent, answer_s)
            except _NotNow as reason:
                wait = max(pause * random.uniform(0.5, 1.0), reason.retry_after_s or 0.0)  # noqa: S311
                if loop.time() + wait > deadline:
                    raise Unavailable(f"{method} {self._url}{path}: {reason}") from reason.__cause__
            await asyncio.sleep(wait)
            pause = min(pause * 2, _LAST_PAUSE_S)

    @asynccontextmanager
    async def lines(self, path: str) -> AsyncIterator[aiohttp.StreamReader]:
        """What the server streams. Raises Refused, Unavailable."""
        session = await self._open()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_ANSWER_S)
        try:
            async with session.get(self._url + path, timeout=timeout) as answer:
                if answer.status != 200:
                    raise refusal(answer.status, await answer.read(), answer.headers.get("Retry-After"))
                yield answer.content
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"GET {self._url}{path}: {_said(error)}") from error

    async def _once(self, method: str, path: str, sent: bytes | None, answer_s: float) -> bytes:
        session = await self._open()
        timeout = aiohttp.ClientTimeout(total=answer_s, sock_connect=_CONNECT_S)
        try:
            async with session.request(method, self._url + path, data=sent, timeout=timeout) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _NotNow(_said(error)) from error
        if answer.status < 400:
            return body
        refused = refusal(answer.status, body, answer.headers.get("Retry-After"))
        if answer.status in _AGAIN:
            raise _NotNow(str(refused), refused.retry_after_s)
        raise refused

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


class _NotNow(OjsError):
    """It may go well later."""

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
