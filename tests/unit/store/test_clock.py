"""The server's clock as a service knows it, with a NATS server whose answers take as long as the test wants."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import cast

import msgspec
import pytest

from ojs_nats.store.clock import ServerClock
from ojs_nats.store.link import Answer, Link, Reply

START = 1_700_000_000.0


class Server:
    """Answers with its own time, `ahead` of the client's; the request takes `there` seconds, the answer `back`."""

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead
        self.wall = START
        self.there = self.back = 0.0

    def now(self) -> float:
        return self.wall

    def request(self, *_: object, **__: object) -> asyncio.Future[Answer]:
        self.wall += self.there
        ts = datetime.fromtimestamp(self.wall + self.ahead, UTC).isoformat()
        self.wall += self.back
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        future.set_result(Reply(b"", b"", msgspec.json.encode({"ts": ts}), None))
        return future

    async def measured(self, clock: ServerClock, there: float, back: float) -> float:
        """Measure once; how far the clock is from the server's time then, in seconds."""
        self.there, self.back = there, back
        await clock.measure(cast("Link", self), "STREAM")
        return clock.now() / 1000 - (self.wall + self.ahead)


@pytest.mark.parametrize("ahead", [-5.0, 0.0, 5.0])
async def test_a_quick_answer_sets_the_clock(ahead: float) -> None:
    server = Server(ahead)
    assert abs(await server.measured(ServerClock(server.now), 0.001, 0.001)) < 0.003


@pytest.mark.parametrize("ahead", [-5.0, 0.0, 5.0])
@pytest.mark.parametrize(("there", "back"), [(1.5, 0.001), (0.001, 1.5)])
async def test_a_slow_answer_does_not_move_a_clock_that_was_set(ahead: float, there: float, back: float) -> None:
    server = Server(ahead)
    clock = ServerClock(server.now)
    await server.measured(clock, 0.001, 0.001)
    assert abs(await server.measured(clock, there, back)) < 0.003


async def test_a_clock_that_went_wrong_is_corrected_as_far_as_the_answer_proves() -> None:
    server = Server(0.0)
    clock = ServerClock(server.now)
    await server.measured(clock, 0.001, 0.001)
    server.ahead = 10.0
    assert abs(await server.measured(clock, 0.2, 0.0)) <= 0.101
    assert abs(await server.measured(clock, 0.001, 0.001)) < 0.003
