"""One listing of a stream's consumers serves all who ask before it begins."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.connection import Connection, Reply, ReplyOrFailure
from ojs_engine.jetstream.consumer_names import ConsumerNames
from support.waiting import eventually

PAGE = 4


class Server(Connection):
    """Lists `names` in pages, once it is let; one of `comers` comes with each page."""

    def __init__(self, names: list[str]) -> None:
        super().__init__("server")
        self.names = names
        self.comers: list[str] = []
        self.asked: list[int] = []
        self.go = asyncio.Event()

    def request(self, subject: str, payload: bytes = b"", *_given: Any, **_named: Any) -> asyncio.Future[ReplyOrFailure]:
        assert subject == "$JS.API.CONSUMER.NAMES.READY"
        return asyncio.ensure_future(self._page(int(msgspec.json.decode(payload)["offset"])))

    async def _page(self, offset: int) -> ReplyOrFailure:
        self.asked.append(offset)
        await self.go.wait()
        page = {"total": len(self.names), "consumers": self.names[offset : offset + PAGE] or None}
        self.names += self.comers[:1]
        del self.comers[:1]
        return Reply(b"", b"", msgspec.json.encode(page), None)


async def listed(server: Server) -> frozenset[str]:
    server.go.set()
    return await ConsumerNames(server, "READY").now()


@pytest.mark.parametrize("number", [0, 1, PAGE, PAGE + 1, 3 * PAGE])
async def test_all_pages_are_read(number: int) -> None:
    server = Server([f"c{one}" for one in range(number)])
    assert await listed(server) == set(server.names)
    assert server.asked == list(range(0, max(number, 1), PAGE))


async def test_a_listing_during_which_consumers_come_is_begun_anew() -> None:
    server = Server([f"c{one}" for one in range(2 * PAGE)])
    server.comers = ["new"]
    assert await listed(server) == {*server.names, "new"}


async def test_consumers_that_come_all_the_time_end_in_a_refusal() -> None:
    server = Server([f"c{one}" for one in range(PAGE + 1)])
    server.comers = [f"new{one}" for one in range(100)]
    with pytest.raises(OjsError, match="come and go"):
        await listed(server)


async def test_those_who_ask_during_a_listing_share_the_next_one() -> None:
    server = Server(["a"])
    names = ConsumerNames(server, "READY")
    first = asyncio.ensure_future(names.now())
    await eventually(lambda: server.asked)
    others = [asyncio.ensure_future(names.now()) for _ in range(50)]
    await asyncio.sleep(0)
    server.names.append("b")  # so late that the first listing may have missed it
    server.go.set()
    assert all("b" in found for found in await asyncio.gather(*others))
    await first
    assert len(server.asked) == 2


async def test_whoever_gives_up_leaves_the_listing_to_the_others() -> None:
    server = Server(["a"])
    names = ConsumerNames(server, "READY")
    first, second = asyncio.ensure_future(names.now()), asyncio.ensure_future(names.now())
    third = asyncio.ensure_future(names.now())
    await eventually(lambda: server.asked)
    first.cancel()
    second.cancel()
    server.go.set()
    assert await third == {"a"}
    assert await names.now() == {"a"}
