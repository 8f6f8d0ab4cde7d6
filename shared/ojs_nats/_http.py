"""Requests over HTTP, on connections that are kept."""

from __future__ import annotations

import asyncio
import random
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from ojs_api.events import OF_JOB, STREAM
from ojs_nats._importing import importing
from ojs_nats._json import decoded
from ojs_nats._lookups import Lookups  # not later: handlers of `atexit` can't import pools of threads any more
from ojs_nats._operations import AnyOperation, Request
from ojs_nats._sse import frames
from ojs_nats._timings import HttpTimings
from ojs_nats._tls import HTTPS, Trust
from ojs_nats._transport import Answer, EventFilter, NotNow, Transport
from ojs_nats.errors import UnavailableError
from ojs_nats.models.events import Event
from ojs_nats.tls import Tls

if TYPE_CHECKING:
    from ojs_nats._connections import Connections

_BESIDE: Final = frozenset({"job.state_changed", "missed", "reset"})
"""The names of lines that repeat the event that they come with."""
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
        timings: HttpTimings = HttpTimings(),
    ) -> None:
        """Raises ValueError for files of TLS that can't be used."""
        super().__init__(url, retry_for_s=retry_for_s, timings=timings.tries)
        self._waits = timings
        self._headers = headers or {}
        self._trust = Trust(tls, files_s=timings.files_s) if url.startswith(HTTPS) else None
        self._keeper: AsyncGenerator[Connections] | None = None
        self._connections: Connections | None = None

    @property
    def is_open(self) -> bool:
        return self._keeper is not None

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.aclose()

    async def once(self, request: Request, body: bytes | None) -> Answer:
        connections = await self._open()
        address, asked = self._address(request.operation, request.parameters)
        answer_s = self._waits.answer_s if request.answer_s is None else request.answer_s
        return await connections.answer(request.operation.method, address, asked, body, request.headers, answer_s)

    async def events(self, wanted: EventFilter) -> AsyncGenerator[Event]:
        after = wanted.after or await self.cursor_now()
        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            connected_at: float | None = None
            try:
                async with await self._followed(wanted, after) as stream:
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
            await asyncio.sleep(random.uniform(*self._waits.reconnect_s))  # noqa: S311

    async def _followed(self, wanted: EventFilter, after: str) -> AbstractAsyncContextManager[AsyncIterable[bytes]]:
        """Return what opens one connection that events come by. Opening it raises NotNow, RefusedError."""
        connections = await self._open()
        filters = {"types": wanted.types, "queues": wanted.queues, "job_types": wanted.job_types}
        said = {name: ",".join(values) for name, values in filters.items() if values} | {"last_event_id": after}
        if wanted.job_id is None:
            return connections.stream(*self._address(STREAM, said))
        return connections.stream(*self._address(OF_JOB, {"job_id": wanted.job_id, **said}))

    def _address(self, operation: AnyOperation, parameters: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Return the address of an operation, and the parameters that it doesn't have in its path."""
        path = _NAME.sub(lambda name: quote(parameters[name[1]], safe=""), operation.place)
        placed = _NAME.findall(operation.path)
        return self.url + path, {name: value for name, value in parameters.items() if name not in placed}

    async def _open(self) -> Connections:
        if self._connections is None:
            self._keeper = self._kept_connections()
            self._connections = await anext(self._keeper)
        return self._connections

    async def _kept_connections(self) -> AsyncGenerator[Connections]:
        """Connections that are closed with their loop, as `asyncio.run` closes generators: scripts need not do it."""
        with importing:  # aiohttp takes longer than all the rest
            from ojs_nats._connections import Connections  # noqa: PLC0415

        # OJS-Version would ask for what the official SDKs read, which differs from the API's description.
        headers = {"Content-Type": "application/json", "User-Agent": "ojs-nats-python", **self._headers}
        lookups = Lookups()
        connections = Connections(headers, self._trust, lookups, self._waits)
        try:
            yield connections
        finally:
            self._connections = self._keeper = None  # they would keep the loop, too
            lookups.close()
            await connections.close()


def _notice(kind: str, data: bytes, cursor: str) -> Event:
    """Return an event for a message about the stream itself, such as that events are gone (`system.gap`)."""
    return Event(id="", type=kind, time=datetime.now(UTC), data=decoded(data, dict[str, Any]), cursor=cursor)
