"""What a follower is told when something was lost on the way, and what becomes of its consumer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.connection import Collected, Connection, Failed, Reply, ReplyOrFailure
from ojs_engine.jetstream.ordered_consumer import OrderedConsumer

NOTHING = Reply(b"", b"", b"", b"NATS/1.0 404 No Messages\r\n\r\n")
GONE = Reply(b"", b"", b"", b"NATS/1.0 409 Consumer Deleted\r\n\r\n")


class Server(Connection):
    """Makes every consumer that it is asked for, and hears of those that are let go."""

    def __init__(self) -> None:
        super().__init__("server")
        self.dropped: list[str] = []

    def request(self, *_given: Any, **_named: Any) -> asyncio.Future[ReplyOrFailure]:
        future: asyncio.Future[ReplyOrFailure] = asyncio.get_running_loop().create_future()
        future.set_result(Reply(b"", b"", b'{"num_pending":3}', None))
        return future

    def publish(self, subject: str, *_given: Any, **_named: Any) -> None:
        self.dropped.append(subject.removeprefix("$JS.API.CONSUMER.DELETE.S."))


def message(number: int, consumer: str = "f-1") -> Reply:
    return Reply(b"a", f"$JS.ACK.S.{consumer}.1.{100 + number}.{number}.1700000000123456789.{9 - number}".encode(), b"x", None)


async def follower(server: Server) -> OrderedConsumer:
    consumer = OrderedConsumer(server, "S", "f", ["a"])
    assert await consumer.begin({"deliver_policy": "all"}) == 3
    return consumer


def taken(consumer: OrderedConsumer, *messages: Reply, closing: Reply | None = NOTHING) -> list[int]:
    return [one.sequence for one in consumer.take(Collected(list(messages), closing))]


async def test_what_comes_in_order_is_taken() -> None:
    consumer = await follower(Server())
    [first, second] = consumer.take(Collected([message(1), message(2)], NOTHING))
    assert (first.sequence, first.at, first.pending, second.number) == (101, 1_700_000_000_123, 8, 2)
    assert taken(consumer) == []
    assert taken(consumer, message(3)) == [103]
    assert consumer.live


async def test_what_comes_before_a_loss_is_taken_and_the_consumer_let_go() -> None:
    server = Server()
    consumer = await follower(server)
    assert taken(consumer, message(1), message(3)) == [101]
    assert not consumer.live
    assert server.dropped == ["f-1"]


async def test_a_pull_that_is_cut_short_is_a_loss() -> None:
    consumer = await follower(Server())
    assert taken(consumer, message(1), closing=None) == [101]
    assert not consumer.live


@pytest.mark.parametrize(
    "outcome",
    [Collected([message(2)], NOTHING), Collected([], None), Collected([], GONE), Failed("away", sent=True)],
    ids=["the first is lost", "no answer", "no consumer", "no connection"],
)
async def test_nothing_is_not_taken_for_no_news(outcome: Collected | Failed) -> None:
    consumer = await follower(Server())
    with pytest.raises(OjsError):
        consumer.take(outcome)
    assert not consumer.live


async def test_another_consumer_counts_anew_and_passes_over_what_was_on_its_way() -> None:
    server = Server()
    consumer = await follower(server)
    assert taken(consumer, message(1), message(2)) == [101, 102]
    await consumer.begin({"deliver_policy": "all"})
    assert server.dropped == ["f-1"]
    assert taken(consumer, message(3), message(1, "f-2")) == [101]
    assert consumer.live
