"""The JetStream API answers that the store reads."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_nats.errors import OjsError, unavailable
from ojs_nats.store.headers import expecting, time_to_live
from ojs_nats.store.link import REQUEST_TIMEOUT_S, Answer, Failed, Link, Reply, header

__all__ = [
    "ApiError",
    "Message",
    "PubAck",
    "ask",
    "call",
    "delete",
    "delete_unheard",
    "message",
    "parse_ack",
    "purge_unheard",
    "put",
    "put_if",
    "refused",
    "sequence_of",
    "stored_at",
    "subject_of",
    "subjects_of",
]

CONFLICT_CODES = frozenset({10071, 10164})
"""Wrong last sequence: with and without its number (the latter while another write is in flight on a cluster)."""
_NOT_FOUND: Final = 10037


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
    link: Link, subject: str, payload: dict[str, Any] | None = None, timeout_s: float = REQUEST_TIMEOUT_S
) -> dict[str, Any]:
    """One JetStream API call off the hot path: the decoded answer, `error` member included if the server sent one.

    Raises OjsError backend_unavailable when there is no answer.
    """
    decoded: dict[str, Any] = msgspec.json.decode(await _answer(link, subject, payload, timeout_s))
    return decoded


async def ask(link: Link, subject: str, payload: dict[str, Any] | None, what: str) -> dict[str, Any]:
    """As `call`, for what must not fail. Raises OjsError backend_unavailable, which says `what` was refused."""
    answer = await call(link, subject, payload)
    if error := answer.get("error"):
        raise unavailable(f"NATS refused {what}: {error.get('description')}")
    return answer


async def _answer(link: Link, subject: str, payload: dict[str, Any] | None, timeout_s: float) -> bytes:
    body = msgspec.json.encode(payload) if payload is not None else b""
    answer: Answer = await link.request(f"$JS.API.{subject}", body, timeout_s=timeout_s)
    if isinstance(answer, Failed):
        raise unavailable(f"NATS JetStream can't be reached: {answer.reason}")
    return answer.data


async def message(
    link: Link, stream: str, which: dict[str, Any], what: str, timeout_s: float = REQUEST_TIMEOUT_S
) -> Message | None:
    """A message as the leader of its stream has it; None if there is none. `which` is a request of STREAM.MSG.GET.

    Raises OjsError backend_unavailable, which names `what`.
    """
    read = _parse_read(await _answer(link, f"STREAM.MSG.GET.{stream}", which, timeout_s))
    if read.error is not None and read.error.err_code != _NOT_FOUND:
        raise unavailable(f"NATS refused a read of {what}: {read.error.description}")
    return read.message


async def subjects_of(link: Link, stream: str, pattern: str) -> dict[str, int]:
    """A stream's subjects that match, up to 100,000, with the number of messages of each. Raises as `ask`."""
    info = await ask(link, f"STREAM.INFO.{stream}", {"subjects_filter": pattern}, "to say what a stream holds")
    found: dict[str, int] = info["state"].get("subjects") or {}
    return found


def delete(link: Link, stream: str, sequence: int) -> asyncio.Future[Answer]:
    """Ask for a message to be deleted, without its place on disk being overwritten, which costs 30 times as much."""
    return link.request(f"$JS.API.STREAM.MSG.DELETE.{stream}", _deletion(sequence))


def delete_unheard(link: Link, stream: str, sequence: int) -> None:
    """The same for what does no harm if it stays: nobody waits for the answer."""
    link.publish(f"$JS.API.STREAM.MSG.DELETE.{stream}", _deletion(sequence), reply=link.nobody)


def purge_unheard(link: Link, stream: str, subject: str) -> None:
    """As `delete_unheard`, by subject."""
    link.publish(f"$JS.API.STREAM.PURGE.{stream}", msgspec.json.encode({"filter": subject}), reply=link.nobody)


def _deletion(sequence: int) -> bytes:
    return b'{"seq":%d,"no_erase":true}' % sequence


async def put(link: Link, subject: str, body: bytes, ttl_s: int | None, what: str) -> int:
    """Store a message without a condition; its sequence. It leaves after `ttl_s`, if that is given.

    Raises OjsError backend_unavailable, which names `what`.
    """
    ack = await _published(link, subject, body, time_to_live(ttl_s), what)
    if ack.error is not None:
        raise refused(what, ack.error)
    return ack.seq


async def put_if(link: Link, subject: str, body: bytes, expected: int, what: str, *, of: str = "") -> int | None:
    """Store a message if the last of its subject, or of the subjects under `of`, has the sequence `expected`; else None.

    Raises as `put`.
    """
    headers = expecting(expected)
    if of:
        headers += f"Nats-Expected-Last-Subject-Sequence-Subject: {of}\r\n"
    ack = await _published(link, subject, body, headers, what)
    if ack.conflict:
        return None
    if ack.error is not None:
        raise refused(what, ack.error)
    return ack.seq


async def _published(link: Link, subject: str, body: bytes, headers: str, what: str) -> PubAck:
    answer = await link.request(subject, body, headers)
    if isinstance(answer, Failed):
        raise unavailable(f"NATS can't store {what} now: {answer.reason}")
    return parse_ack(answer.data)


def refused(what: str, error: ApiError) -> OjsError:
    """A refusal by JetStream that is not a conflict: no room, no quorum, a stream gone."""
    return unavailable(f"NATS JetStream refused {what}: {error.description} ({error.err_code})", retry_after=2)
