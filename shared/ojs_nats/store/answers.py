"""What became of a write whose answer is awaited."""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_nats.errors import OjsError
from ojs_nats.store.api import ApiError, PubAck, parse_ack
from ojs_nats.store.link import Answer, Failed, Link
from ojs_nats.transitions.result import Transition

__all__ = [
    "FIRST_PAUSE_S",
    "LAST_PAUSE_S",
    "Written",
    "ack_of",
    "outcome",
    "pause_or_raise",
    "stored",
    "why",
    "worth_another_try",
]

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
        self.timer: asyncio.Future[Answer] | None = None
        self.step: asyncio.Future[Answer] | None = None
        self.releases: list[asyncio.Future[Answer]] = []
        self.token: asyncio.Future[Answer] | None = None
        self.record: asyncio.Future[Answer] | None = None


async def pause_or_raise(link: Link, pause: float, deadline: float, error: OjsError) -> float:
    """Wait before another try and return the pause before the next; raises `error` if the deadline (loop time) leaves none."""
    if asyncio.get_running_loop().time() + pause > deadline or not link.connected:
        raise error
    await asyncio.sleep(pause)
    return min(pause * 2, LAST_PAUSE_S)


async def outcome(future: asyncio.Future[Answer] | None) -> PubAck | Failed | None:
    return None if future is None else ack_of(await future)


def ack_of(answer: Answer) -> PubAck | Failed:
    if isinstance(answer, Failed):
        return answer
    return parse_ack(answer.data)


def stored(ack: PubAck | Failed | None) -> bool:
    return isinstance(ack, PubAck) and ack.error is None


def worth_another_try(error: ApiError) -> bool:
    """JetStream's own 503s pass (elections, a stream not ready yet); anything else will say the same again."""
    return error.code == 503


def why(*outcomes: PubAck | Failed | None) -> str:
    """In words, of the first that went wrong."""
    for one in outcomes:
        if isinstance(one, Failed):
            return f"NATS JetStream can't store the job now: {one.reason}"
        if one is not None and one.error is not None:
            return f"NATS JetStream can't store the job now: {one.error.description}"
    return "NATS JetStream can't store the job now"
