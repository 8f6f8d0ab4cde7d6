"""The JetStream API answers that the store reads."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ojs_nats.errors import OjsError, unavailable
from ojs_nats.store.link import REQUEST_TIMEOUT_S, Answer, Failed, Link

__all__ = ["ApiError", "PubAck", "call", "parse_ack", "put"]

CONFLICT_CODES = frozenset({10071, 10164})
"""Wrong last sequence: with and without its number (the latter while another write is in flight on a cluster)."""


class ApiError(Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class PubAck(Struct, frozen=True):
    """Answer to a publish: the stream sequence, or why it was refused."""

    seq: int = 0
    error: ApiError | None = None

    @property
    def conflict(self) -> bool:
        return self.error is not None and self.error.err_code in CONFLICT_CODES


parse_ack = msgspec.json.Decoder(PubAck).decode


async def call(
    link: Link, subject: str, payload: dict[str, Any] | None = None, timeout_s: float = REQUEST_TIMEOUT_S
) -> dict[str, Any]:
    """One JetStream API call off the hot path: the decoded answer, `error` member included if the server sent one.

    Raises OjsError backend_unavailable when there is no answer.
    """
    body = msgspec.json.encode(payload) if payload is not None else b""
    answer: Answer = await link.request(f"$JS.API.{subject}", body, timeout_s=timeout_s)
    if isinstance(answer, Failed):
        raise unavailable(f"NATS JetStream can't be reached: {answer.reason}")
    decoded: dict[str, Any] = msgspec.json.decode(answer.data)
    return decoded


async def put(link: Link, subject: str, body: bytes, ttl_s: int | None, what: str) -> int:
    """Store a message without a condition; its sequence. It leaves after `ttl_s`, if that is given.

    Raises OjsError backend_unavailable, which names `what`.
    """
    answer = await link.request(subject, body, "" if ttl_s is None else f"Nats-TTL: {ttl_s}s\r\n")
    if isinstance(answer, Failed):
        raise unavailable(f"NATS can't store {what} now: {answer.reason}")
    ack = parse_ack(answer.data)
    if ack.error is not None:
        raise refused(what, ack.error)
    return ack.seq


def refused(what: str, error: ApiError) -> OjsError:
    """A refusal by JetStream that is not a conflict: no room, no quorum, a stream gone."""
    return unavailable(f"NATS JetStream refused {what}: {error.description} ({error.err_code})", retry_after=2)
