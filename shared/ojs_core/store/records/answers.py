"""What became of a write whose answer is awaited."""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_core.base.errors import OjsError, unavailable
from ojs_core.domain.transitions.result import Transition
from ojs_core.jetstream.api import ApiError, PubAck, parse_ack, refused
from ojs_core.jetstream.connection import Connection, Failed, ReplyOrFailure

FIRST_PAUSE_S: Final = 0.02
LAST_PAUSE_S: Final = 0.25


class Written:
    """The answers that a commit's messages wait for."""

    __slots__ = ("body", "expected", "op", "record", "releases", "step", "timer", "token", "transition")

    def __init__(self, transition: Transition, expected: int, op: str, body: bytes) -> None:
        self.transition = transition
        self.body = body
        self.expected = expected
        self.op = op
        self.timer: asyncio.Future[ReplyOrFailure] | None = None
        self.step: asyncio.Future[ReplyOrFailure] | None = None
        self.releases: list[asyncio.Future[ReplyOrFailure]] = []
        self.token: asyncio.Future[ReplyOrFailure] | None = None
        self.record: asyncio.Future[ReplyOrFailure] | None = None


async def pause_or_raise(nats: Connection, pause: float, deadline: float, error: OjsError) -> float:
    """Wait before another try and return the pause before the next; raises `error` if the deadline (loop time) leaves none."""
    if asyncio.get_running_loop().time() + pause > deadline or not nats.connected:
        raise error
    await asyncio.sleep(pause)
    return min(pause * 2, LAST_PAUSE_S)


async def outcome(future: asyncio.Future[ReplyOrFailure] | None) -> PubAck | Failed | None:
    return None if future is None else ack_of(await future)


def ack_of(answer: ReplyOrFailure) -> PubAck | Failed:
    if isinstance(answer, Failed):
        return answer
    return parse_ack(answer.data)


def stored(ack: PubAck | Failed | None) -> bool:
    return isinstance(ack, PubAck) and ack.error is None


def worth_another_try(error: ApiError) -> bool:
    """JetStream's own 503s pass (elections, a stream not ready yet); anything else will say the same again."""
    return error.code == 503


def failure(what: str, *outcomes: PubAck | Failed | None) -> OjsError:
    """What the caller hears of a write that didn't come to be: the first of its messages that went wrong says why."""
    for one in outcomes:
        if isinstance(one, Failed):
            return unavailable(f"NATS JetStream can't store {what} now: {one.reason}")
        if one is not None and one.error is not None:
            return refused(what, one.error)
    return unavailable(f"NATS JetStream can't store {what} now")
