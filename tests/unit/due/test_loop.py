from __future__ import annotations

import asyncio
from typing import Any, cast

from ojs_engine.base.errors import unavailable
from ojs_engine.due.loop import DueLoop, DueLoopTimings
from ojs_engine.jetstream.due_messages import Due, DueMessages
from support.waiting import eventually

DUE = Due("job", 1, 0, 1, "ack")


class Messages:
    """One message, again and again until it is let go."""

    def __init__(self) -> None:
        self.pulls = 0
        self.put_off: list[Due] = []
        self.given_back: list[Due] = []

    async def next(self) -> list[Due]:
        self.pulls += 1
        await asyncio.sleep(0)
        return [DUE]

    def later(self, due: Due, _delay_ms: int) -> None:
        self.put_off.append(due)

    def give_back(self, batch: list[Due]) -> None:
        self.given_back += batch


async def test_nothing_is_pulled_while_it_is_held_and_what_was_pulled_meanwhile_is_put_off() -> None:
    messages = Messages()
    handled: list[Due] = []
    answers: list[bool] = [False, True]
    asked = 0

    async def held() -> bool:
        nonlocal asked
        asked += 1
        return answers.pop(0) if answers else released is False

    async def handle(batch: list[Due]) -> None:
        handled.extend(batch)

    released: Any = False
    loop = DueLoop("test", cast("DueMessages", messages), handle, held, timings=DueLoopTimings(held_s=0.001))
    await loop.start()
    try:
        await eventually(lambda: asked > 9)
        assert (messages.pulls, messages.put_off, handled) == (1, [DUE], [])
        released = True
        await eventually(lambda: handled)
    finally:
        await loop.stop()


async def test_what_was_pulled_is_given_back_if_nobody_can_say_whether_it_is_held() -> None:
    messages = Messages()
    answers: list[bool | None] = [False, None]

    async def held() -> bool:
        answer = answers.pop(0) if answers else True
        if answer is None:
            raise unavailable("no leader")
        return answer

    async def handle(_batch: list[Due]) -> None:
        raise AssertionError("it may be held")

    loop = DueLoop("test", cast("DueMessages", messages), handle, held)
    await loop.start()
    try:
        await eventually(lambda: messages.given_back)
    finally:
        await loop.stop()
    assert (messages.given_back, messages.put_off) == ([DUE], [])
