"""Pauses between tries of a compare-and-swap that others keep winning, or that a cluster in trouble keeps refusing."""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.store.records.write_timings import WriteTimings

_AT_ONCE: Final = 2


def pause_s(conflicts: int, chance: float, timings: WriteTimings) -> float:
    """Seconds to wait after so many conflicts in a row: none after two, then from half to the whole of 20 ms, which
    doubles each time, up to 300 ms. Twelve tries last for 1 to 2 seconds then. `chance` is from [0, 1).
    """
    if conflicts <= _AT_ONCE:
        return 0.0
    return min(timings.first_conflict_s * (1 << (conflicts - _AT_ONCE - 1)), timings.last_conflict_s) * (0.5 + chance / 2)


class Tries:
    """One turn of an `async for` for each try of a compare-and-swap, with a pause after conflicts, until the budget
    is spent.

    Not a generator: one that is left before its end, as after every success, costs the event loop a task to close it.
    """

    __slots__ = ("_clock", "_conflicts", "_timings", "_until")

    def __init__(self, clock: ServerClock, timings: WriteTimings, budget_s: float) -> None:
        self._clock = clock
        self._timings = timings
        self._conflicts = 0
        self._until = asyncio.get_running_loop().time() + budget_s

    def __aiter__(self) -> Tries:
        return self

    async def __anext__(self) -> None:
        if self._conflicts:
            if asyncio.get_running_loop().time() >= self._until:
                raise StopAsyncIteration
            await step_back(self._clock, self._conflicts, self._timings)
        self._conflicts += 1


async def step_back(clock: ServerClock, conflicts: int, timings: WriteTimings) -> None:
    """Await this after the `conflicts`-th conflict in a row (from 1), before the next try."""
    if conflicts > _AT_ONCE:
        await asyncio.sleep(pause_s(conflicts, clock.moment().chance, timings))


def contended(what: str) -> OjsError:
    """503 for what was not changed before the budget was spent."""
    return unavailable(f"{what} changed again and again while this request tried to change it; try again")
