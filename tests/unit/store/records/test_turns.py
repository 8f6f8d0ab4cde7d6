"""One of many changes of a record has its turn, and a crowd that is too large is refused."""

from __future__ import annotations

import asyncio

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.store.records.turns import Turns


async def test_a_record_is_changed_by_one_at_a_time_and_others_at_once() -> None:
    turns = Turns(20.0)
    order: list[str] = []

    async def change(record: str, name: str) -> None:
        async with turns.turn(record):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(change("a", "1"), change("a", "2"), change("b", "3"))
    assert order.index("1 ends") < order.index("2 begins")
    assert order.index("3 begins") < order.index("1 ends")


async def test_a_turn_that_does_not_come_is_given_up_and_the_next_one_comes() -> None:
    turns = Turns(longest_wait_s=0.01)
    async with turns.turn("a"):
        with pytest.raises(OjsError, match="changed again and again") as refused:
            async with turns.turn("a"):
                raise AssertionError("it isn't free")
    assert refused.value.code == "backend_unavailable"
    async with turns.turn("a"):
        pass
