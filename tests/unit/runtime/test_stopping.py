from __future__ import annotations

import asyncio
import os
import signal

import pytest

from ojs_runtime.stopping import Stopping


async def test_work_ends_with_its_result() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await Stopping(5.0).unless(work()) == 7


async def test_work_raises_what_it_raises() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await Stopping(5.0).unless(work())


async def test_a_request_cancels_work_and_waits_for_its_end() -> None:
    stopping, cleaned = Stopping(5.0), asyncio.Event()

    async def work() -> int:
        try:
            stopping.request()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()
        return 7

    assert await stopping.unless(work()) is None
    assert cleaned.is_set()


async def test_the_time_to_stop_runs_from_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, stopping = asyncio.get_running_loop(), Stopping(2.0)
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    assert stopping.remaining(0.5) == 1.5
    stopping.request()
    assert stopping.remaining(0.5) == pytest.approx(1.5)
    now += 0.5
    stopping.request()
    assert stopping.remaining(0.5) == pytest.approx(1.0)
    assert stopping.remaining(3.0) == 0


async def test_waiting_ends_with_the_request() -> None:
    stopping = Stopping(5.0)
    waiting = asyncio.ensure_future(stopping.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    stopping.request()
    await asyncio.wait_for(waiting, 60.0)
    assert stopping.requested


@pytest.mark.usefixtures("signals_kept")
async def test_a_time_to_drain_is_announced_and_ends_with_a_request() -> None:
    stopping = Stopping(2.0, 300.0)
    stopping.on_signals()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(stopping.announced(), 60)
    assert (stopping.draining, stopping.requested) == (True, False)
    for number in (signal.SIGTERM, signal.SIGINT):  # or the loop sets Python's own handlers when it is closed
        asyncio.get_running_loop().remove_signal_handler(number)
