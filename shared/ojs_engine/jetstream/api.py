"""The JetStream API answers that the store reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from ojs_engine.base.errors import OjsError, storage_full, unavailable
from ojs_engine.jetstream.connection import Collected, Connection, Failed, Reply, ReplyOrFailure
from ojs_engine.jetstream.headers import expecting, time_to_live

T = TypeVar("T", Reply, Collected)

CONFLICT_CODES = frozenset({10071, 10164})
"""Wrong last sequence: with and without its number (the latter while another write is in flight on a cluster)."""
_NO_MESSAGE: Final = 10057
_FULL: Final = {
    10002: "the storage that NATS gives the account (max_file) is used up",
    10023: "nats-server's storage (max_file_store) is used up",
}
"""Refusals for want of room. Their own words are about resources."""


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
    nats: Connection, subject: str, payload: dict[str, Any] | None = None, timeout_s: float | None = None
) -> dict[str, Any]:
    """One JetStream API call off the hot path: the decoded answer, `error` member included if the server sent one.

    Raises OjsError backend_unavailable when there is no answer.
    """
    decoded: dict[str, Any] = msgspec.json.decode(await raw_answer(nats, subject, payload, timeout_s))
    return decoded


async def ask(nats: Connection, subject: str, payload: dict[str, Any] | None, what: str) -> dict[str, Any]:
    """As `call`, for what must not fail. Raises OjsError backend_unavailable, which says `what` was refused."""
    answer = await call(nats, subject, payload)
    if error := answer.get("error"):
        raise unavailable(f"NATS refused {what}: {error.get('description')}")
    return answer


def error_of(answer: bytes) -> ApiError | None:
    """Why a call was refused, None if it was not: all answers say it as one to a publish does."""
    return parse_ack(answer).error


async def raw_answer(
    nats: Connection, subject: str, payload: dict[str, Any] | None = None, timeout_s: float | None = None
) -> bytes:
    """Return the same undecoded. A bounded number of calls is under way (`Connection.turns`)."""
    body = msgspec.json.encode(payload) if payload is not None else b""
    async with nats.turns.one():
        answer = await nats.request(f"$JS.API.{subject}", body, timeout_s=timeout_s)
    return heard(answer).data


class Denied(OjsError):
    """NATS doesn't let this process's user ask that."""

    def __init__(self, reason: str) -> None:
        super().__init__("backend_unavailable", f"NATS refused: {reason}", retry_after=5)


def heard(answer: T | Failed) -> T:
    """What was answered. Raises OjsError backend_unavailable."""
    if isinstance(answer, Failed):
        if answer.denied:
            raise Denied(answer.reason)
        raise unavailable(f"NATS JetStream can't be reached: {answer.reason}")
    return answer


def delete(
    nats: Connection,
    stream: str,
    sequence: int,
    timeout_s: float | None = None,
) -> asyncio.Future[ReplyOrFailure]:
    """Ask for a message to be deleted, without its place on disk being overwritten, which costs 30 times as much."""
    return nats.request(f"$JS.API.STREAM.MSG.DELETE.{stream}", _deletion(sequence), timeout_s=timeout_s)


def deleted(answer: ReplyOrFailure) -> bool | None:
    """Whether `delete` found a message to delete; None if it may be there still."""
    if isinstance(answer, Failed):
        return None
    error = error_of(answer.data)
    if error is None:
        return True
    return False if error.err_code == _NO_MESSAGE else None


def delete_unheard(nats: Connection, stream: str, sequence: int) -> None:
    """The same for what does no harm if it stays: nobody waits for the answer."""
    nats.publish(f"$JS.API.STREAM.MSG.DELETE.{stream}", _deletion(sequence), reply=nats.nobody)


async def purge(nats: Connection, stream: str, subject: str, timeout_s: float | None = None) -> ApiError | None:
    """Delete the messages of a subject, or all if it is empty; why that was refused, if it was. Raises as `call`."""
    return error_of(await raw_answer(nats, f"STREAM.PURGE.{stream}", {"filter": subject}, timeout_s))


def purge_unheard(nats: Connection, stream: str, subject: str, *, before: int | None = None, keep: int | None = None) -> None:
    """As `delete_unheard`, by subject: all messages, those `before` a sequence, or all but the last ones to `keep`."""
    wanted: dict[str, Any] = {"filter": subject}
    if before is not None:
        wanted["seq"] = before
    if keep is not None:
        wanted["keep"] = keep
    nats.publish(f"$JS.API.STREAM.PURGE.{stream}", msgspec.json.encode(wanted), reply=nats.nobody)


def _deletion(sequence: int) -> bytes:
    return b'{"seq":%d,"no_erase":true}' % sequence


async def put(nats: Connection, subject: str, body: bytes, ttl_s: int | None, what: str, *, timer: str = "") -> int:
    """Store a message without a condition; its sequence. It leaves after `ttl_s`, if that is given; `timer`: as of headers.py.

    Raises OjsError backend_unavailable, which names `what`.
    """
    ack = _ack(await nats.request(subject, body, timer + time_to_live(ttl_s)), what)
    if ack.error is not None:
        raise refused(what, ack.error)
    return ack.seq


async def put_once(nats: Connection, subject: str, body: bytes, message_id: str, what: str) -> None:
    """Store a message that may be stored already, by the same id, within the last two minutes. Raises as `put`."""
    ack = _ack(await nats.request(subject, body, f"Nats-Msg-Id: {message_id}\r\n"), what)
    if ack.error is not None:
        raise refused(what, ack.error)


async def put_all(nats: Connection, messages: Sequence[tuple[str, bytes]], what: str) -> None:
    """Store messages, by subject and body, without conditions; they leave together. Raises as `put`; some may be stored."""
    answers = [nats.request(subject, body) for subject, body in messages]
    for answer in await asyncio.gather(*answers):
        ack = _ack(answer, what)
        if ack.error is not None:
            raise refused(what, ack.error)


async def put_if(
    nats: Connection, subject: str, body: bytes, expected: int, what: str, *, of: str = "", ttl_s: int | None = None
) -> int | None:
    """As `put`, if the last message of the subject, or of the subjects under `of`, has the sequence `expected`; else None."""
    headers = expecting(expected) + time_to_live(ttl_s)
    if of:
        headers += f"Nats-Expected-Last-Subject-Sequence-Subject: {of}\r\n"
    ack = _ack(await nats.request(subject, body, headers), what)
    if ack.conflict:
        return None
    if ack.error is not None:
        raise refused(what, ack.error)
    return ack.seq


def _ack(answer: ReplyOrFailure, what: str) -> PubAck:
    if isinstance(answer, Failed):
        raise unavailable(f"NATS can't store {what} now: {answer.reason}")
    return parse_ack(answer.data)


def refused(what: str, error: ApiError) -> OjsError:
    """A refusal by JetStream that is not a conflict: no room (storage_full), no quorum, a stream gone."""
    if error.err_code in _FULL:
        return storage_full(_FULL[error.err_code])
    return unavailable(f"NATS JetStream refused {what}: {error.description} ({error.err_code})", retry_after=2)
