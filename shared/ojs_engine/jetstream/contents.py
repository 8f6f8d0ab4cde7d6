"""Reading what a stream holds: messages, from its leader or from the nearest replica, which may be behind, and subjects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_engine.base.errors import unavailable
from ojs_engine.jetstream.api import ApiError, Denied, heard, raw_answer
from ojs_engine.jetstream.connection import Connection, Failed, Reply, ReplyOrFailure, header, status

_NOT_FOUND: Final = 10037
_NO_STREAM: Final = 10059


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
    nats: Connection, stream: str, which: dict[str, Any], what: str, timeout_s: float | None = None
) -> Message | None:
    """A message as the leader of its stream has it; None if there is none. `which` is a request of STREAM.MSG.GET.

    Raises OjsError backend_unavailable, which names `what`.
    """
    read = _parse_read(await raw_answer(nats, f"STREAM.MSG.GET.{stream}", which, timeout_s))
    if read.error is not None and read.error.err_code != _NOT_FOUND:
        raise unavailable(f"NATS refused a read of {what}: {read.error.description}")
    return read.message


def ask_nearest(nats: Connection, stream: str, subject: str, timeout_s: float | None) -> asyncio.Future[ReplyOrFailure]:
    """Ask the nearest replica for the last message of a subject; status 404 if there is none."""
    return nats.request(f"$JS.API.DIRECT.GET.{stream}.{subject}", timeout_s=timeout_s)


async def messages(
    nats: Connection, stream: str, which: dict[str, Any], what: str, timeout_s: float | None = None
) -> tuple[list[Reply], int]:
    """Messages as the nearest replica has them, and how many there are beyond. `which` is a request of DIRECT.GET.

    Raises OjsError backend_unavailable, which names `what`.
    """
    wait_s = nats.timings.request_s if timeout_s is None else timeout_s
    outcome = await nats.collect(f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(which), 0, wait_s)
    if isinstance(outcome, Failed) and outcome.denied:
        raise Denied(outcome.reason)
    if isinstance(outcome, Failed) or outcome.closing is None:
        raise unavailable(f"NATS did not answer a read of {what}")
    code = status(outcome.closing)
    if code not in {204, 404}:
        raise unavailable(f"NATS refused a read of {what} with status {code}")
    left = int(header(outcome.closing.headers, b"Nats-Num-Pending") or 0)
    return outcome.messages, left if outcome.messages else 0


async def count(
    nats: Connection, stream: str, subject: str, what: str, *, after: int = 0, timeout_s: float | None = None
) -> int:
    """How many messages behind a sequence have such a subject, as the nearest replica has them. Raises as `messages`."""
    which = {"next_by_subj": subject, "seq": after + 1, "batch": 1}
    batch, left = await messages(nats, stream, which, what, timeout_s)
    return len(batch) + left


class StreamState(Struct, frozen=True):
    """Sequences of the first and last message (if there is none the first is above the last), and numbers of messages."""

    first_seq: int = 0
    last_seq: int = 0
    first_ts: str = ""
    messages: int = 0
    num_subjects: int = 0
    consumer_count: int = 0
    subjects: dict[str, int] = {}

    @property
    def lost(self) -> int:
        """How many messages nats-server has subjects for and can't find any more, since their file is damaged."""
        return max(0, self.num_subjects - self.messages)


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


async def damage(nats: Connection, streams: Sequence[str]) -> str | None:
    """What nats-server shows to have lost of some streams, None if nothing. Raises OjsError backend_unavailable.

    Its own verdict (/healthz) is for its administrator; of a stream that it could not read at all it says that there is none.
    """
    infos = [_parse_info(heard(answer).data) for answer in await asyncio.gather(*(ask_info(nats, name) for name in streams))]
    found = []
    for name, info in zip(streams, infos, strict=True):
        if info.error is not None and info.error.err_code == _NO_STREAM:
            found.append(f"there is no stream {name} any more")
        elif info.state.lost:
            found.append(f"stream {name} has lost {info.state.lost:,} messages: its file is damaged")
    return "; ".join(found) or None
