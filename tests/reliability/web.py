"""Requests that are sent at most once each, to whichever gateway takes them, on the benchmark's raw connections."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from bench.client import Connection, Target
from bench.messages import Requests

UNSURE: Final = frozenset({408, 500, 502, 503, 504})
"""Answers that leave open what has happened."""
_CONNECT_S: Final = 2.0


class Answer(NamedTuple):
    """What came back; `status` None if nothing did, and then `sent` says whether the request can have had an effect."""

    status: int | None
    body: Any = None
    sent: bool = True

    @property
    def sure(self) -> bool:
        """It settles what the request has done."""
        return self.status is not None and self.status not in UNSURE

    @property
    def done(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def code(self) -> str:
        """The error code of a refusal."""
        return str(self.body.get("error", {}).get("code", self.status)) if isinstance(self.body, dict) else str(self.status)


class _Line(Connection):
    """One request at a time. Once it is lost it is of no more use."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        self._answer = self.loop.create_future()
        self.send(request)
        return await self._answer

    def answered(self, status: int, body: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((status, body))

    def failed(self, reason: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(reason))

    def connection_lost(self, exc: Exception | None) -> None:
        self.failed(f"connection lost ({exc})")
        self.close()


class Web:
    """All clients of a run share its connections. What went wrong is counted in `errors`."""

    def __init__(self, urls: Sequence[str], chance: random.Random, *, timeout_s: float = 8.0) -> None:
        self.errors: Counter[str] = Counter()
        self._timeout_s = timeout_s
        self._targets = [Target.from_url(url) for url in urls]
        self._requests = [Requests(target) for target in self._targets]
        self._idle: list[deque[_Line]] = [deque() for _ in urls]
        self._chance = chance

    async def get(self, path: str) -> Answer:
        return await self.ask("GET", path)

    async def post(self, path: str, body: object, *, timeout_s: float | None = None) -> Answer:
        return await self.ask("POST", path, body, timeout_s=timeout_s)

    async def ask(self, method: str, path: str, body: object = None, *, timeout_s: float | None = None) -> Answer:
        """One request to any of the gateways."""
        which = self._chance.randrange(len(self._targets))
        requests = self._requests[which]
        match method:
            case "GET":
                request = requests.get(path)
            case "DELETE":
                request = requests.delete(path)
            case _:
                request = requests.post(path, body)
        try:
            line = await self._line(which)
        except (OSError, TimeoutError):
            self.errors["refused"] += 1
            return Answer(None, sent=False)
        try:
            async with asyncio.timeout(timeout_s or self._timeout_s):
                status, payload = await line.exchange(request)
        except TimeoutError:
            line.close()
            self.errors["timeout"] += 1
            return Answer(None)
        except ConnectionError:
            line.close()
            self.errors["lost"] += 1
            return Answer(None)
        except asyncio.CancelledError:
            line.close()
            raise
        self._idle[which].append(line)
        if status >= 500:
            self.errors[str(status)] += 1
        return Answer(status, msgspec.json.decode(payload) if payload else None)

    async def insist(self, method: str, path: str, body: object = None, *, patience_s: float = 60.0) -> Answer:
        """Ask until an answer settles it; the last answer if none has within `patience_s`."""
        deadline = asyncio.get_running_loop().time() + patience_s
        while True:
            answer = await self.ask(method, path, body)
            if answer.sure or asyncio.get_running_loop().time() > deadline:
                return answer
            await self.pause()

    async def pause(self) -> None:
        """What a client waits before it tries again."""
        await asyncio.sleep(self._chance.uniform(0.1, 0.4))

    def close(self) -> None:
        for lines in self._idle:
            while lines:
                lines.pop().close()

    async def _line(self, which: int) -> _Line:
        lines = self._idle[which]
        while lines:
            line = lines.pop()
            if line.connected:
                return line
            line.close()
        line = _Line(self._targets[which])
        async with asyncio.timeout(_CONNECT_S):
            await line.open()
        return line
