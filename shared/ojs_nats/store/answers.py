"""What became of a write whose answer is awaited."""

from __future__ import annotations

import asyncio

from ojs_nats.store.api import ApiError, PubAck, parse_ack
from ojs_nats.store.link import Answer, Failed

__all__ = ["ack_of", "outcome", "stored", "why", "worth_another_try"]


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
