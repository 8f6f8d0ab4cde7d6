"""Waiting for an event, but not for ever, and for what is done again and again."""

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


def until_next(period_s: float, now: float | None = None) -> float:
    """Return the seconds until the next multiple of a period by the loop's clock, or the one after if that is near.

    All processes of a machine have the same clock: what they do now and then falls together, and wakes nats-server once.
    """
    left = period_s - (asyncio.get_running_loop().time() if now is None else now) % period_s
    return left if left > period_s / 10 else left + period_s
