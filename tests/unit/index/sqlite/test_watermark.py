from __future__ import annotations

import asyncio

import pytest

from ojs_index.sqlite.watermark import Watermark


async def test_those_who_wait_go_on_in_the_order_of_what_they_wait_for() -> None:
    reached = Watermark()
    went: list[int] = []

    async def wait(sequence: int) -> None:
        assert await reached.until(sequence, 60.0)
        went.append(sequence)

    tasks = [asyncio.create_task(wait(sequence)) for sequence in (3, 1, 2)]
    await asyncio.sleep(0)
    assert reached.wanted.is_set()
    reached.advance(2)
    await asyncio.wait(tasks[1:])
    assert sorted(went) == [1, 2]
    assert reached.wanted.is_set()
    reached.advance(9)
    await asyncio.gather(*tasks)
    assert not reached.wanted.is_set()


async def test_what_is_reached_already_is_not_waited_for() -> None:
    reached = Watermark()
    reached.advance(5)
    assert await reached.until(5, 0.0)
    reached.advance(3)  # never back
    assert await reached.until(5, 0.0)


async def test_the_wait_is_bounded() -> None:
    reached = Watermark()
    assert not await reached.until(1, 0.01)
    reached.advance(1)
    assert not reached.wanted.is_set()


async def test_what_is_lost_is_waited_for_anew() -> None:
    reached = Watermark()
    reached.advance(5)
    reached.fall_back(3)
    assert await reached.until(3, 0.0)
    assert not await reached.until(4, 0.01)


async def test_who_is_stopped_in_the_moment_in_which_it_is_reached_stops() -> None:
    mark = Watermark()
    waiting = asyncio.create_task(mark.until(5, 10.0))
    await asyncio.sleep(0)
    mark.advance(5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
