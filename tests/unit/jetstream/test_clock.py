"""The server's clock as a service knows it, with a NATS server whose answers take as long as the test wants."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import cast

import msgspec
import pytest

from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection, Reply, ReplyOrFailure
from ojs_engine.jetstream.turns import Turns, TurnTimings

START = 1_700_000_000.0


class Server:
    """Answers with its own time, `ahead` of the client's; the request takes `there` seconds, the answer `back`."""

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead
        self.turns = Turns(TurnTimings())
        self.wall = START
        self.there = self.back = 0.0

    def now(self) -> float:
        return self.wall

    def clock(self) -> ServerClock:
        """A client's clock, on a machine that shows the client's time."""
        return ServerClock(steady=self.now, wall=self.now)

    def request(self, *_: object, **__: object) -> asyncio.Future[ReplyOrFailure]:
        self.wall += self.there
        ts = datetime.fromtimestamp(self.wall + self.ahead, UTC).isoformat()
        self.wall += self.back
        future: asyncio.Future[ReplyOrFailure] = asyncio.get_running_loop().create_future()
        future.set_result(Reply(b"", b"", msgspec.json.encode({"ts": ts}), None))
        return future

    async def measured(self, clock: ServerClock, there: float, back: float) -> float:
        """Measure once; how far the clock is from the server's time a second later, in seconds."""
        self.there, self.back = there, back
        await clock.measure(cast("Connection", self), "STREAM")
        self.wall += 1.0
        return clock.now() / 1000 - (self.wall + self.ahead)


@pytest.mark.parametrize("ahead", [-5.0, 0.0, 5.0])
async def test_a_quick_answer_sets_the_clock(ahead: float) -> None:
    server = Server(ahead)
    assert abs(await server.measured(server.clock(), 0.001, 0.001)) < 0.003


@pytest.mark.parametrize("ahead", [-5.0, 0.0, 5.0])
@pytest.mark.parametrize(("there", "back"), [(1.5, 0.001), (0.001, 1.5)])
async def test_a_slow_answer_does_not_move_a_clock_that_was_set(ahead: float, there: float, back: float) -> None:
    server = Server(ahead)
    clock = server.clock()
    await server.measured(clock, 0.001, 0.001)
    assert abs(await server.measured(clock, there, back)) < 0.003


async def test_a_clock_that_went_wrong_is_corrected_as_far_as_the_answer_proves() -> None:
    server = Server(0.0)
    clock = server.clock()
    await server.measured(clock, 0.001, 0.001)
    server.ahead = 10.0
    assert abs(await server.measured(clock, 0.2, 0.0)) <= 0.101
    assert abs(await server.measured(clock, 0.001, 0.001)) < 0.003


async def test_the_date_of_the_machine_may_be_set_at_any_time() -> None:
    server = Server(0.0)
    date = START
    clock = ServerClock(steady=server.now, wall=lambda: date)
    await server.measured(clock, 0.001, 0.001)
    for hours in (1, -1):
        date = START + 3_600 * hours
        assert abs(clock.now() / 1000 - server.wall) < 0.003
        assert abs(await server.measured(clock, 0.001, 0.001)) < 0.003


async def test_a_drift_is_corrected_by_what_is_proven_however_slow_the_answer() -> None:
    server = Server(0.0)
    clock = server.clock()
    await server.measured(clock, 0.001, 0.001)
    server.ahead = -0.05
    assert abs(await server.measured(clock, 0.02, 1.5)) <= 0.051, "proven is at most that it is up to 20 ms ahead"
    assert abs(await server.measured(clock, 0.001, 0.001)) < 0.003


async def test_a_small_correction_backwards_is_waited_out() -> None:
    server = Server(0.0)
    clock = server.clock()
    await server.measured(clock, 0.001, 0.001)
    before = clock.now()
    server.ahead = -0.5
    await clock.measure(cast("Connection", server), "STREAM")
    seen = [clock.now()]
    for _ in range(10):
        server.wall += 0.1
        seen.append(clock.now())
    assert seen == sorted(seen)
    assert seen[0] <= before + 2, "and it has not jumped ahead"
    assert abs(seen[-1] / 1000 - (server.wall + server.ahead)) < 0.003


async def test_a_server_whose_clock_was_set_back_is_followed() -> None:
    server = Server(0.0)
    clock = server.clock()
    await server.measured(clock, 0.001, 0.001)
    clock.now()
    server.ahead = -3_600.0
    assert abs(await server.measured(clock, 0.001, 0.001)) < 0.003
