"""The heartbeats of a worker by themselves."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec

from ojs_nats._operations import Request
from ojs_nats._transport import Answer, Transport
from ojs_nats.worker._heartbeats import Heartbeats, Signs


class SlowWay(Transport):
    """A way to a server that takes its time over each answer, or gives none."""

    def __init__(self, seconds: float) -> None:
        super().__init__("http://127.0.0.1:1")
        self.seconds = seconds
        self.asked = threading.Event()
        self.answers = 0

    async def once(self, request: Request, body: bytes | None) -> Answer:
        del request, body
        self.asked.set()
        await asyncio.sleep(self.seconds)
        self.answers += 1
        return Answer(200, msgspec.json.encode({"state": "running", "jobs_extended": []}))

    async def close(self) -> None:
        """Nothing is open."""


def beating(way: SlowWay) -> Heartbeats[Any]:
    signs = Signs[Any]("running", {"worker_id": "w"}, {}, None, 60.0)
    return Heartbeats(lambda: way, lambda: signs, lambda _beat: None, lambda _mark: None)


async def test_one_under_way_is_answered_before_there_are_no_more() -> None:
    way = SlowWay(0.1)
    beats = beating(way)
    beats.start()
    await asyncio.to_thread(way.asked.wait)
    await beats.stop()
    assert way.answers == 1


async def test_one_that_nobody_answers_holds_the_end_up_for_a_moment_only() -> None:
    way = SlowWay(3_600)
    beats = beating(way)
    beats.start()
    await asyncio.to_thread(way.asked.wait)
    async with asyncio.timeout(30):
        await beats.stop()
    assert way.answers == 0
