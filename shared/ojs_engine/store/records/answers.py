"""What became of a write whose answer is awaited."""

from __future__ import annotations

import asyncio

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.jetstream.api import PubAck, parse_ack, refused
from ojs_engine.jetstream.connection import Connection, Failed, ReplyOrFailure


async def pause_or_raise(nats: Connection, pause: float, deadline: float, error: OjsError, longest_s: float) -> float:
    """Wait before another try and return the next pause; raises `error` if the deadline (loop time) leaves none."""
    if asyncio.get_running_loop().time() + pause > deadline or not nats.connected:
        raise error
    await asyncio.sleep(pause)
    return min(pause * 2, longest_s)


def ack_of(answer: ReplyOrFailure) -> PubAck | Failed:
    if isinstance(answer, Failed):
        return answer
    return parse_ack(answer.data)


def stored(ack: PubAck | Failed) -> bool:
    return isinstance(ack, PubAck) and ack.error is None


def failure(what: str, *outcomes: PubAck | Failed) -> OjsError:
    """What the caller hears of a write that didn't come to be: the first of its messages that went wrong says why."""
    for one in outcomes:
        if isinstance(one, Failed):
            return unavailable(f"NATS JetStream can't store {what} now: {one.reason}")
        if one.error is not None:
            return refused(what, one.error)
    return unavailable(f"NATS JetStream can't store {what} now")
