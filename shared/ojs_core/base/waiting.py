"""Waiting for an event, but not for ever."""

from __future__ import annotations

import asyncio


async def within(seconds: float | None, event: asyncio.Event) -> bool:
    """Wait until `event` is set, or the time is up, if it has an end; whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
