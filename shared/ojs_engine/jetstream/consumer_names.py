"""The names of a stream's consumers, listed once for all who ask at about the same moment."""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.jetstream.api import ask
from ojs_engine.jetstream.connection import Connection

_TRIES: Final = 5
"""How often a listing is made. One during which the number of consumers changes may leave some out."""


class ConsumerNames:
    """Lists the consumers of one stream. Each caller gets a listing that began after its call."""

    def __init__(self, nats: Connection, stream: str) -> None:
        self._nats = nats
        self._stream = stream
        self._running: asyncio.Task[frozenset[str]] | None = None
        self._following: asyncio.Task[frozenset[str]] | None = None

    async def now(self) -> frozenset[str]:
        """Return the names of all consumers that are there when this is called. Raises OjsError backend_unavailable."""
        if self._running is None:
            self._running = listing = asyncio.create_task(self._listed(None), name="consumer-names")
        elif self._following is None:
            self._following = listing = asyncio.create_task(self._listed(self._running), name="consumer-names")
        else:
            listing = self._following
        listing.add_done_callback(_heard)
        try:
            return await asyncio.shield(listing)
        except OjsError as error:
            raise unavailable(error.message) from None

    async def _listed(self, before: asyncio.Task[frozenset[str]] | None) -> frozenset[str]:
        try:
            if before is not None:
                await asyncio.wait([before])
                del before  # a failure keeps this frame, which would keep the failure before it, and so on
                self._running, self._following = self._following, None
            return await self._pages()
        finally:
            if self._running is asyncio.current_task():
                self._running = None

    async def _pages(self) -> frozenset[str]:
        for _ in range(_TRIES):
            names: set[str] = set()
            totals: set[int] = set()
            offset = 0
            while True:
                page = await ask(self._nats, f"CONSUMER.NAMES.{self._stream}", {"offset": offset}, "to list consumers")
                found = page.get("consumers") or []
                totals.add(page["total"])
                names.update(found)
                offset += len(found)
                if not found or offset >= page["total"]:
                    break
            if len(totals) == 1:
                return frozenset(names)
        raise unavailable("consumers come and go while they are listed")


def _heard(listing: asyncio.Task[frozenset[str]]) -> None:
    """Take up a failure that those who asked were cancelled before."""
    if not listing.cancelled():
        listing.exception()
