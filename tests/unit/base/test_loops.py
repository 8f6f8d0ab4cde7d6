"""Background work goes on after whatever its turns meet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from ojs_engine.base.errors import unavailable
from ojs_engine.base.loops import run_forever, start_loop, stop_loop, stop_tasks
from support.waiting import eventually


class Pauses(list[float]):
    """What a loop would sleep for, instead of sleeping."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@contextmanager
def running(
    outcomes: Sequence[BaseException | None], pauses: Pauses, *, every_s: float = 0.0, tell: bool = True
) -> Iterator[Callable[[], bool]]:
    """A loop whose turns end in these ways; says when it has taken all of them."""
    left = list(outcomes)

    async def turn() -> None:
        if not left:
            await asyncio.Event().wait()
        outcome = left.pop(0)
        if outcome is not None:
            raise outcome

    task = asyncio.create_task(run_forever("test", turn, every_s=every_s, tell=tell, sleep=pauses.sleep))
    try:
        yield lambda: not left
    finally:
        task.cancel()


async def test_no_exception_ends_a_loop_and_each_is_told_of(pauses: Pauses) -> None:
    with capture_logs() as logs, running([None, unavailable("no leader"), ValueError("a bug"), None], pauses) as taken:
        await eventually(taken)
    assert [(line["log_level"], line["work"]) for line in logs] == [
        ("warning", "test"),
        ("error", "test"),
        ("info", "test"),
    ]
    assert (logs[0]["reason"], logs[1]["exc_info"]) == ("no leader", True)
    assert len(pauses) >= 4


async def test_work_that_waits_for_long_is_told_of_once_and_so_is_that_it_goes_on(pauses: Pauses) -> None:
    with capture_logs() as logs, running([*[unavailable("no leader")] * 50, None], pauses) as taken:
        await eventually(taken)
    said = [line["event"] for line in logs if line["log_level"] != "debug"]
    assert said == ["background work waits", "background work goes on"]


async def test_a_loop_goes_on_where_something_was_cancelled_that_its_turn_waited_for(pauses: Pauses) -> None:
    with capture_logs() as logs, running([asyncio.CancelledError(), None], pauses) as taken:
        await eventually(taken)
    assert [(line["log_level"], line["work"], line["exc_info"]) for line in logs] == [("error", "test", True)]


async def test_a_loop_that_may_wait_in_silence_tells_of_unexpected_failures_only(pauses: Pauses) -> None:
    with capture_logs() as logs, running([unavailable("no leader"), ValueError("a bug")], pauses, tell=False) as taken:
        await eventually(taken)
    assert [line["log_level"] for line in logs] == ["debug", "error"]
    assert pauses


async def test_pauses_grow_while_turns_fail_unexpectedly_and_only_then(pauses: Pauses) -> None:
    failures = [ValueError()] * 7
    outcomes = [*failures, None, ValueError(), unavailable("no"), unavailable("no"), None]
    with capture_logs(), running(outcomes, pauses, every_s=0.1) as taken:
        await eventually(taken)
    assert pauses[:12] == [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 0.1, 0.25, 0.25, 0.25]


async def test_a_loop_whose_turn_swallows_a_cancellation_ends_all_the_same() -> None:
    """As a turn does that waits by `asyncio.wait_for` before Python 3.12, when what it waits for comes at that moment."""
    swallowed: list[int] = []
    begun = asyncio.Event()

    async def turn() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.append(len(swallowed))
            if len(swallowed) > 2:
                raise

    loop = start_loop("test", turn)
    await begun.wait()
    async with asyncio.timeout(60):
        await stop_loop(loop)
    assert (loop.cancelled(), swallowed) == (True, [0, 1, 2])


async def test_tasks_are_ended_however_they_end() -> None:
    async def failing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("at the end")

    async def waiting() -> None:
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(failing()), asyncio.create_task(waiting())]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await stop_tasks(tasks)
        await stop_tasks([])
    assert all(task.done() for task in tasks)
