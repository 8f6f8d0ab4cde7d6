"""Background work that goes on whatever happens: one turn after another, with a pause that grows while they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar

import structlog

from ojs_engine.base.errors import OjsError
from ojs_link.lasting import Lasting
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)


class LoopTimings(Timings, frozen=True, kw_only=True):
    """The pauses of background work behind turns that failed."""

    wait_s: float = 0.25
    """Behind a turn that a broken dependency has ended: its return is noticed soon."""
    first_pause_s: float = 0.25
    """Behind a turn that has failed in an unexpected way; each is twice as long as the one before."""
    last_pause_s: float = 5.0
    """The longest of these pauses."""
    order: ClassVar[Order] = (("first_pause_s", "last_pause_s", "pauses would grow shorter"),)


async def run_forever(
    name: str,
    turn: Callable[[], Awaitable[object]],
    *,
    every_s: float = 0.0,
    tell: bool = True,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    timings: LoopTimings = LoopTimings(),
) -> None:
    """Take `turn` after `turn` until this is cancelled, `every_s` seconds ahead of each.

    No exception ends it, nor that something is cancelled which a turn waits for. `tell`: warn that turns meet OjsError,
    the first time and then ever more seldom, and say when they no longer do, rather than note it for debugging.
    """
    waits = Lasting()
    pause = 0.0
    failed_s = timings.first_pause_s
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
            pause = timings.wait_s
        except (Exception, asyncio.CancelledError):
            if _is_cancelled():
                raise
            log.exception("background work failed and goes on", work=name)
            pause = failed_s
            failed_s = min(failed_s * 2, timings.last_pause_s)
        else:
            pause, failed_s = 0.0, timings.first_pause_s
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


async def stop_tasks(tasks: Iterable[asyncio.Task[Any]], again_s: float = 1.0) -> None:
    """End tasks and return when all have ended, however they do.

    A task's cancellation may be swallowed, as by `asyncio.wait_for` before Python 3.12, so it is repeated after `again_s`.
    """
    ending = list(tasks)
    left = {task for task in ending if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=again_s)
    await asyncio.gather(*ending, return_exceptions=True)
