"""The JetStream API answers that the store reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_core.base.errors import OjsError, storage_full, unavailable
from ojs_core.jetstream.connection import REQUEST_TIMEOUT_S, Connection, Failed, Reply, ReplyOrFailure, header, status
from ojs_core.jetstream.headers import expecting, time_to_live

CONFLICT_CODES = frozenset({10071, 10164})
"""Wrong last sequence: with and without its number (the latter while another write is in flight on a cluster)."""
_NOT_FOUND: Final = 10037
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


class Message(Struct, frozen=True):
    """A stored message, as nats-server describes it; `hdrs` is the whole block of headers."""

    seq: int
    time: str
    data: bytes = b""
    hdrs: bytes = b""

    @property
    def at(self) -> int:
        """When it was stored (server time, Unix ms)."""
        return _unix_ms(self.time)


def subject_of(reply: Reply) -> str:
    """Of a message that a direct get was answered with."""
    return (header(reply, b"Nats-Subject") or b"").decode()


def sequence_of(reply: Reply) -> int:
    """As `subject_of`."""
    return int(header(reply, b"Nats-Sequence") or 0)


def stored_at(reply: Reply) -> int:
    """As `subject_of`: server time, Unix ms."""
    return _unix_ms((header(reply, b"Nats-Time-Stamp") or b"1970-01-01T00:00:00Z").decode())


def _unix_ms(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp).timestamp() * 1000)


class _Read(Struct, frozen=True):
    message: Message | None = None
    error: ApiError | None = None


_parse_read = msgspec.json.Decoder(_Read).decode


async def call(
    nats: Connection, subject: str, payload: dict[str, Any] | None = None, timeout_s: float = REQUEST_TIMEOUT_S
) -> dict[str, Any]:
    """One JetStream API call off the hot path: the decoded answer, `error` member included if the server sent one.

    Raises OjsError backend_unavailable when there is no answer.
    """
    decoded: dict[str, Any] = msgspec.json.decode(await _answer(nats, subject, payload, timeout_s))
    return decoded


async def ask(nats: Connection, subject: str, payload: dict[str, Any] | None, what: str) -> dict[str, Any]:
    """As `call`, for what must not fail. Raises OjsError backend_unavailable, which says `what` was refused."""
    answer = await call(nats, subject, payload)
    if error := answer.get("error"):
        raise unavailable(f"NATS refused {what}: {error.get('description')}")
    return answer


async def _answer(nats: Connection, subject: str, payload: dict[str, Any] | None, timeout_s: float) -> bytes:
    body = msgspec.json.encode(payload) if payload is not None else b""
    answer: ReplyOrFailure = await nats.request(f"$JS.API.{subject}", body, timeout_s=timeout_s)
    if isinstance(answer, Failed):
        raise unavailable(f"NATS JetStream can't be reached: {answer.reason}")
    return answer.data


async def message(
    nats: Connection, stream: str, which: dict[str, Any], what: str, timeout_s: float = REQUEST_TIMEOUT_S
) -> Message | None:
    """A message as the leader of its stream has it; None if there is none. `which` is a request of STREAM.MSG.GET.

    Raises OjsError backend_unavailable, which names `what`.
    """
    read = _parse_read(await _answer(nats, f"STREAM.MSG.GET.{stream}", which, timeout_s))
    if read.error is not None and read.error.err_code != _NOT_FOUND:
        raise unavailable(f"NATS refused a read of {what}: {read.error.description}")
    return read.message


async def messages(
    bulk: Connection, stream: str, subjects: str, start: dict[str, Any], most: int, timeout_s: float = REQUEST_TIMEOUT_S
) -> tuple[list[Reply], int]:
    """Up to `most` messages as the nearest replica has them, and how many there are beyond. `start` says where to begin: `seq`
    or `start_time` of a batched direct get. Raises OjsError backend_unavailable.
    """
    request = msgspec.json.encode(start | {"next_by_subj": subjects, "batch": most})
    outcome = await bulk.collect(f"$JS.API.DIRECT.GET.{stream}", request, 0, timeout_s)
    if isinstance(outcome, Failed) or outcome.closing is None or status(outcome.closing) not in {204, 404}:
        raise unavailable("NATS did not answer a read of tokens")
    left = int(header(outcome.closing, b"Nats-Num-Pending") or 0)
    return outcome.messages, left if outcome.messages else 0


async def subjects_of(nats: Connection, stream: str, pattern: str) -> dict[str, int]:
    """A stream's subjects that match, up to 100,000, with the number of messages of each. Raises as `ask`."""
    info = await ask(nats, f"STREAM.INFO.{stream}", {"subjects_filter": pattern}, "to say what a stream holds")
    found: dict[str, int] = info["state"].get("subjects") or {}
    return found


def delete(
    nats: Connection, stream: str, sequence: int, timeout_s: float = REQUEST_TIMEOUT_S
) -> asyncio.Future[ReplyOrFailure]:
    """Ask for a message to be deleted, without its place on disk being overwritten, which costs 30 times as much."""
    return nats.request(f"$JS.API.STREAM.MSG.DELETE.{stream}", _deletion(sequence), timeout_s=timeout_s)


def delete_unheard(nats: Connection, stream: str, sequence: int) -> None:
    """The same for what does no harm if it stays: nobody waits for the answer."""
    nats.publish(f"$JS.API.STREAM.MSG.DELETE.{stream}", _deletion(sequence), reply=nats.nobody)


def purge_unheard(nats: Connection, stream: str, subject: str, *, before: int | None = None) -> None:
    """As `delete_unheard`, by subject: all messages, or those `before` a sequence."""
    wanted = {"filter": subject} if before is None else {"filter": subject, "seq": before}
    nats.publish(f"$JS.API.STREAM.PURGE.{stream}", msgspec.json.encode(wanted), reply=nats.nobody)


def _deletion(sequence: int) -> bytes:
    return b'{"seq":%d,"no_erase":true}' % sequence


async def put(nats: Connection, subject: str, body: bytes, ttl_s: int | None, what: str) -> int:
    """Store a message without a condition; its sequence. It leaves after `ttl_s`, if that is given.

    Raises OjsError backend_unavailable, which names `what`.
    """
    ack = await _published(nats, subject, body, time_to_live(ttl_s), what)
    if ack.error is not None:
        raise refused(what, ack.error)
    return ack.seq


async def put_all(nats: Connection, messages: Sequence[tuple[str, bytes]], what: str) -> None:
    """Store messages, by subject and body, without conditions; they leave together. Raises as `put`; some may be stored."""
    answers = [nats.request(subject, body) for subject, body in messages]
    for answer in await asyncio.gather(*answers):
        ack = _ack(answer, what)
        if ack.error is not None:
            raise refused(what, ack.error)


async def put_if(nats: Connection, subject: str, body: bytes, expected: int, what: str, *, of: str = "") -> int | None:
    """Store a message if the last of its subject, or of the subjects under `of`, has the sequence `expected`; else None.

    Raises as `put`.
    """
    headers = expecting(expected)
    if of:
        headers += f"Nats-Expected-Last-Subject-Sequence-Subject: {of}\r\n"
    ack = await _published(nats, subject, body, headers, what)
    if ack.conflict:
        return None
    if ack.error is not None:
        raise refused(what, ack.error)
    return ack.seq


async def _published(nats: Connection, subject: str, body: bytes, headers: str, what: str) -> PubAck:
    return _ack(await nats.request(subject, body, headers), what)


def _ack(answer: ReplyOrFailure, what: str) -> PubAck:
    if isinstance(answer, Failed):
        raise unavailable(f"NATS can't store {what} now: {answer.reason}")
    return parse_ack(answer.data)


def refused(what: str, error: ApiError) -> OjsError:
    """A refusal by JetStream that is not a conflict: no room (storage_full), no quorum, a stream gone."""
    if error.err_code in _FULL:
        return storage_full(_FULL[error.err_code])
    return unavailable(f"NATS JetStream refused {what}: {error.description} ({error.err_code})", retry_after=2)
