"""Connections that take room and do no work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from bench.client import Target
from bench.messages import Requests

_IDLE: Final = 1_000
_WAITING: Final = 600
_HALF: Final = 400
_QUEUES: Final = 50
_HALF_HEAD: Final = b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: here\r\nContent-Ty"
_HALF_BODY: Final = (
    b'POST /ojs/v1/jobs HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"type": "ha'
)


class Crowd:
    """Idle connections, fetches that wait on queues where nothing comes, and requests of which half was sent."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._targets = [Target.from_url(url) for url in urls]
        self._writers: list[asyncio.StreamWriter] = []

    async def come(self) -> None:
        """Connect, all of them."""
        for number in range(_IDLE + _WAITING + _HALF):
            target = self._targets[number % len(self._targets)]
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(target.host, target.port)
                self._writers.append(writer)
                writer.write(self._said(target, number))

    def _said(self, target: Target, number: int) -> bytes:
        if number < _IDLE:
            return b""
        if number < _IDLE + _WAITING:
            return Requests(target).fetch(f"nothing-{number % _QUEUES}", count=1, worker=f"crowd-{number}", wait_ms=30_000)
        return _HALF_HEAD if number % 2 else _HALF_BODY

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers:
            writer.transport.abort()
