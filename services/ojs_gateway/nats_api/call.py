"""A request that came over NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, NamedTuple

from ojs_engine.api.call import Binding, Call
from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.fields import shown
from ojs_engine.base.numbers import whole_number
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.readable import ALL_READABLE, readable, unreadable_header
from ojs_engine.wire.dialects.readers import Dialect
from ojs_engine.wire.queries import Queries, parse_queries
from ojs_gateway.http.compression import unpacked
from ojs_gateway.nats_api.operation import Operation

ANY_QUEUE: Final = "_"
"""Stands for a queue in subjects of requests that may be about any; no queue has this name."""
_PARAMETERS: Final = "OJS-Parameters"
_TIMEOUT: Final = "OJS-Timeout"
_INTERIM: Final = "OJS-Interim"


class Headers(NamedTuple):
    """The headers of a message by their names in small letters, and the names of those that weren't UTF-8."""

    values: dict[str, str]
    unreadable: frozenset[str] = ALL_READABLE


def headers_of(block: bytes | None) -> Headers:
    """Return the headers of a message; values of one name are joined by commas."""
    found: dict[str, str] = {}
    unreadable: list[str] = []
    if block is not None:
        for line in block.decode("utf-8", "surrogateescape").split("\r\n")[1:]:
            name, colon, sent = line.partition(":")
            if colon:
                name, value = readable(name).strip().lower(), readable(sent)
                if value != sent:
                    unreadable.append(name)
                value = value.strip()
                found[name] = f"{found[name]}, {value}" if name in found else value
    return Headers(found, frozenset(unreadable))


class NatsCall(Call):
    """The client is gone when the time is over that it said it would wait. `listened` finds out whether it is there,
    by an interim answer, if it said that it passes over those.

    Raises invalid_request for headers that can't be read, permission_denied for a path about another queue than the
    subject's.
    """

    __slots__ = ("_body", "_headers", "_listened", "_queries", "_unreadable", "_until")

    binding: ClassVar[Binding] = "nats"

    def __init__(
        self,
        operation: Operation,
        asked_queue: str,
        sent: Headers,
        body: bytes,
        dialect: Dialect,
        limits: PayloadLimits,
        aside: LargeBodies,
        *,
        arrived: float,
        room: int,
        listened: Callable[[], Awaitable[bool]],
    ) -> None:
        headers, self._unreadable = sent
        self._listened = listened if _INTERIM.lower() in headers else None
        queue = None if asked_queue == ANY_QUEUE else asked_queue
        self._headers = headers
        self._body = body
        self._until = _until(headers.get(_TIMEOUT.lower()), arrived)
        if _PARAMETERS.lower() in self._unreadable:
            raise unreadable_header(_PARAMETERS)
        self._queries = queries = parse_queries(headers.get(_PARAMETERS.lower(), ""), _PARAMETERS)
        if operation.of_a_queue and queue is not None:
            queries.setdefault("queue", queue)
        if double := queries.doubled.intersection(operation.placed):
            raise invalid(double.pop(), f"{_PARAMETERS} names a part of the path of {operation.name} twice: leave one out")
        for name in operation.placed:
            if not queries.get(name):
                raise invalid(name, f"{operation.name} needs the parameter {name}, in the header {_PARAMETERS}")
        placed = {name: queries.pop(name) for name in operation.placed}
        super().__init__(dialect, tuple(placed.values()), limits, aside, queue, room)
        if operation.of_a_queue:
            self.require_queue(placed["queue"])

    @property
    def left(self) -> bool:
        return self._until is not None and asyncio.get_running_loop().time() >= self._until

    @property
    def address(self) -> str:
        return "nats"

    async def has_left(self) -> bool:
        return self.gone or (self._listened is not None and not await self._listened())

    @property
    def queries(self) -> Queries:
        return self._queries

    def header(self, name: str) -> str | None:
        if name.lower() in self._unreadable:
            raise unreadable_header(name)
        return self.remark(name)

    def remark(self, name: str) -> str | None:
        return self._headers.get(name.lower())

    async def body(self, limit: int) -> bytes:
        body = self._body
        if len(body) > limit:
            raise too_large("envelope_too_large", "the request body", len(body), limit)
        encoding = self.header("Content-Encoding")
        if encoding is None or not body:
            return body
        return await unpacked(self._aside, body, encoding, limit)


def _until(timeout: str | None, arrived: float) -> float | None:
    """When the client stops waiting, by the event loop's clock."""
    if timeout is None:
        return None
    milliseconds = whole_number(timeout, 9)
    if milliseconds is None:
        raise invalid(_TIMEOUT, f"{_TIMEOUT} is how many milliseconds the answer is waited for, not {shown(timeout)}")
    return arrived + milliseconds / 1_000
