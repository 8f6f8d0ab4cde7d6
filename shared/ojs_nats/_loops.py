"""The event loop that runs."""

from __future__ import annotations

import asyncio

from ojs_nats._durations import Duration, milliseconds


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that runs here. Raises RuntimeError, with a remedy, where none of asyncio does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "no event loop of asyncio runs here: without one write send_email.push_sync(…) or app.sync; trio has none, "
            "so run what awaits on asyncio (of anyio's backends the one named 'asyncio')"
        ) from None


def limit(timeout: Duration | None) -> asyncio.Timeout:
    """Return what ends an `async with` after a time, by TimeoutError. None is no limit. Raises as `running_loop`."""
    running_loop()
    return asyncio.timeout(None if timeout is None else milliseconds(timeout) / 1_000)
