"""Some at a time."""

from __future__ import annotations

import asyncio

from ojs_engine.base.portions import in_portions


async def test_no_more_run_at_once_and_what_they_make_is_in_order() -> None:
    running = most = 0

    async def one(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(1 + number % 3):
            await asyncio.sleep(0)
        running -= 1
        return number * 10

    assert await in_portions(range(8), one, 3) == [0, 10, 20, 30, 40, 50, 60, 70]
    assert most == 3
