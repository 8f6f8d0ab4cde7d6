"""Reading what a stream holds: messages, from its leader or from the nearest replica, which may be behind, and subjects."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_core.base.errors import unavailable
from ojs_core.jetstream.api import ApiError, heard, raw_answer
from ojs_core.jetstream.connection import REQUEST_TIMEOUT_S, Connection, Failed, Reply, ReplyOrFailure, header, status

_NOT_FOUND: Final = 10037


class Message(Struct, frozen=True):
    """A stored message, as nats-server describes it; `hdrs` is the whole block of headers."""

    seq: int
    time: str
    data: bytes = b""
    hdrs: bytes = b""

    @property
    def at(self) -> int:
        """When it was stored (server time, Unix ms)."""
        return unix_ms(self.time)


def subject_of(reply: Reply) -> str:
    """Of a message that a direct get was answered with."""
    return (header(reply.headers, b"Nats-Subject") or b"").decode()


def sequence_of(reply: Reply) -> int:
    """As `subject_of`."""
    return int(header(reply.headers, b"Nats-Sequence") or 0)


def stored_at(reply: Reply) -> int:
    """As `subject_of`: server time, Unix ms."""
    return unix_ms((header(reply.headers, b"Nats-Time-Stamp") or b"1970-01-01T00:00:00Z").decode())


def unix_ms(stamp: str) -> int:
    """A time as nats-server writes it, in Unix ms."""
    return int(datetime.fromisoformat(stamp).timestamp() * 1000)


class _Read(Struct, frozen=True):
    message: Message | None = None
    error: ApiError | None = None


_parse_read = msgspec.json.Decoder(_Read).decode


async def message(
    nats: Connection, stream: str, which: dict[str, Any], what: str, timeout_s: float = REQUEST_TIMEOUT_S
) -> Message | None:
    """A message as the leader of its stream has it; None if there is none. `which` is a request of STREAM.MSG.GET.

    Raises OjsError backend_unavailable, which names `what`.
    """
    read = _parse_read(await raw_answer(nats, f"STREAM.MSG.GET.{stream}", which, timeout_s))
    if read.error is not None and read.error.err_code != _NOT_FOUND:
        raise unavailable(f"NATS refused a read of {what}: {read.error.description}")
    return read.message


def ask_nearest(nats: Connection, stream: str, subject: str, timeout_s: float) -> asyncio.Future[ReplyOrFailure]:
    """Ask the nearest replica for the last message of a subject; status 404 if there is none."""
    return nats.request(f"$JS.API.DIRECT.GET.{stream}.{subject}", timeout_s=timeout_s)


async def messages(
    nats: Connection, stream: str, which: dict[str, Any], what: str, timeout_s: float = REQUEST_TIMEOUT_S
) -> tuple[list[Reply], int]:
    """Messages as the nearest replica has them, and how many there are beyond. `which` is a request of DIRECT.GET.

    Raises OjsError backend_unavailable, which names `what`.
    """
    outcome = await nats.collect(f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(which), 0, timeout_s)
    if isinstance(outcome, Failed) or outcome.closing is None:
        raise unavailable(f"NATS did not answer a read of {what}")
    code = status(outcome.closing)
    if code not in {204, 404}:
        raise unavailable(f"NATS refused a read of {what} with status {code}")
    left = int(header(outcome.closing.headers, b"Nats-Num-Pending") or 0)
    return outcome.messages, left if outcome.messages else 0


class StreamState(Struct, frozen=True):
    """Sequences of the first and last message (if there is none the first is above the last), and numbers of messages."""

    first_seq: int = 0
    last_seq: int = 0
    first_ts: str = ""
    consumer_count: int = 0
    subjects: dict[str, int] = {}


class StreamLimits(Struct, frozen=True):
    max_consumers: int = -1


class StreamInfo(Struct, frozen=True):
    """What somebody needs of it: to decode all would cost a fetch more than its other work. `total` is of subjects."""

    created: str = ""
    state: StreamState = StreamState()
    config: StreamLimits = StreamLimits()
    total: int = 0
    error: ApiError | None = None


_parse_info = msgspec.json.Decoder(StreamInfo).decode


def ask_info(nats: Connection, stream: str, pattern: str = "", offset: int = 0) -> asyncio.Future[ReplyOrFailure]:
    """Ask for a stream, and if there is a `pattern` for 100,000 of its subjects that match, from the `offset`th on."""
    request = {"subjects_filter": pattern, "offset": offset}
    return nats.request(f"$JS.API.STREAM.INFO.{stream}", msgspec.json.encode(request))


def read_info(answer: ReplyOrFailure, what: str) -> StreamInfo:
    """The answer. Raises OjsError backend_unavailable, which says `what` was refused."""
    info = _parse_info(heard(answer).data)
    if info.error is not None:
        raise unavailable(f"NATS refused {what}: {info.error.description}")
    return info


async def stream_info(nats: Connection, stream: str) -> StreamInfo:
    """Without subjects. Raises OjsError backend_unavailable."""
    return read_info(await ask_info(nats, stream), f"to describe stream {stream}")


async def subjects_of(nats: Connection, stream: str, pattern: str) -> dict[str, int]:
    """A stream's subjects that match, as its leader has them, with the number of messages of each. Raises as `stream_info`."""
    found: dict[str, int] = {}
    seen = 0
    while True:
        info = read_info(await ask_info(nats, stream, pattern, seen), "to say what a stream holds")
        found |= info.state.subjects
        seen += len(info.state.subjects)
        if not info.state.subjects or seen >= info.total:
            return found
