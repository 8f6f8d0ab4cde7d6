"""Background work that goes on whatever happens: one turn after another, with a pause that grows while they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import structlog

from ojs_core.base.errors import OjsError
from ojs_link.lasting import Lasting

log = structlog.get_logger(__name__)

_WAIT_S: Final = 0.25
"""After a turn that a broken dependency has ended: whoever waits for it to be back wants to hear of that soon."""
_FIRST_PAUSE_S: Final = 0.25
_LAST_PAUSE_S: Final = 5.0
"""After a turn that has failed in an unexpected way, twice as long each time."""
_CANCELLED_S: Final = 1.0
"""What a task has to end in before it is cancelled again."""


async def run_forever(
    name: str,
    turn: Callable[[], Awaitable[object]],
    *,
    every_s: float = 0.0,
    tell: bool = True,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Take `turn` after `turn` until this is cancelled, `every_s` seconds ahead of each.

    No exception ends it, nor that something is cancelled which a turn waits for. `tell`: warn that turns meet OjsError,
    the first time and then ever more seldom, and say when they no longer do, rather than note it for debugging.
    """
    waits = Lasting()
    pause = 0.0
    failed_s = _FIRST_PAUSE_S
    while True:
        await sleep(max(every_s, pause))
        try:
            await turn()
        except OjsError as error:
            seconds = waits.noted()
            if tell and seconds is not None:
                log.warning("background work waits", work=name, reason=error.message, seconds=round(seconds))
            else:
                log.debug("background work waits", work=name, reason=error.message)
            pause = _WAIT_S
        except (Exception, asyncio.CancelledError):
            if _is_cancelled():
                raise
            log.exception("background work failed and goes on", work=name)
            pause = failed_s
            failed_s = min(failed_s * 2, _LAST_PAUSE_S)
        else:
            pause, failed_s = 0.0, _FIRST_PAUSE_S
            if (seconds := waits.over()) is not None and tell:
                log.info("background work goes on", work=name, after_seconds=round(seconds, 1))


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def start_loop(
    name: str, turn: Callable[[], Awaitable[object]], *, every_s: float = 0.0, tell: bool = True
) -> asyncio.Task[None]:
    """`run_forever` as a task of that name."""
    return asyncio.create_task(run_forever(name, turn, every_s=every_s, tell=tell), name=name)


async def stop_loop(task: asyncio.Task[None] | None) -> None:
    """End a loop and return when it has ended; there may be none."""
    if task is not None:
        await stop_tasks([task])


async def stop_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """End tasks and return when all have ended, however they do.

    What a task waits in may swallow its cancellation, as `asyncio.wait_for` does before Python 3.12, so that is repeated.
    """
    ending = list(tasks)
    left = {task for task in ending if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_CANCELLED_S)
    await asyncio.gather(*ending, return_exceptions=True)
