"""Requests of the JetStream API take turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import raw_answer
from ojs_engine.jetstream.connection import Connection, Reply, ReplyOrFailure
from ojs_engine.jetstream.consumers import remove
from ojs_engine.jetstream.turns import Turns, TurnTimings


class Server(Connection):
    """Counts how many requests are under way."""

    def __init__(self) -> None:
        super().__init__("server")
        self.turns = Turns(TurnTimings(at_once=10))
        self.under_way = self.most = self.answered = 0

    def request(self, *_given: Any, **_named: Any) -> asyncio.Future[ReplyOrFailure]:
        return asyncio.ensure_future(self._answer())

    async def _answer(self) -> ReplyOrFailure:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(3):
            await asyncio.sleep(0)
        self.under_way -= 1
        self.answered += 1
        return Reply(b"", b"", b"{}", None)


async def test_of_a_thousand_at_once_a_bounded_number_is_under_way() -> None:
    server = Server()
    await asyncio.gather(*(raw_answer(server, "STREAM.INFO.S") for _ in range(1_000)))
    assert (server.most, server.answered) == (10, 1_000)


async def test_consumers_are_deleted_some_at_a_time() -> None:
    server = Server()
    server.turns = Turns(TurnTimings(at_once=1_000))
    await remove(server, "S", [f"c{number}" for number in range(1_000)])
    assert server.answered == 1_000
    assert server.most <= 32


async def test_a_request_whose_turn_never_comes_is_refused() -> None:
    turns = Turns(TurnTimings(at_once=1, wait_s=0.0))
    async with turns.one():
        with pytest.raises(OjsError, match="too many requests to JetStream wait"):
            async with turns.one():
                pass
    async with turns.one():
        pass


async def test_a_turn_that_is_cancelled_is_free_again() -> None:
    turns = Turns(TurnTimings(at_once=1))

    async def holding() -> None:
        async with turns.one():
            await asyncio.Event().wait()

    held, waits = asyncio.ensure_future(holding()), asyncio.ensure_future(holding())
    await asyncio.sleep(0)
    for task in (waits, held):
        task.cancel()
    await asyncio.gather(held, waits, return_exceptions=True)
    async with turns.one():
        pass
