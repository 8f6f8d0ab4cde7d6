"""A reader of server-sent events, for tests over HTTP."""

from __future__ import annotations

import asyncio

import aiohttp


class Stream:
    """An SSE connection, read frame by frame."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def frame(self) -> dict[str, str]:
        """The next frame with data; comments are passed over."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(60):
            async for raw in self._response.content:
                line = raw.decode().rstrip("\n")
                if line == "" and "data" in fields:
                    return fields
                if line == "":
                    fields = {}
                elif not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
        raise AssertionError("the stream ended")

    async def rest(self) -> list[dict[str, str]]:
        """All frames until the server ends the stream."""
        found = []
        while True:
            try:
                found.append(await self.frame())
            except AssertionError:
                return found

    async def connected(self) -> None:
        """Wait for the first bytes, which say that the subscription stands."""
        async with asyncio.timeout(60):
            assert await self._response.content.readline() == b": connected\n"
