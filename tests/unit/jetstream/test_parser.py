"""Messages are cut out of what is read, wherever the reads end."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats.errors import ProtocolError

from ojs_engine.jetstream.connection import OnMessage, _DirectClient, _DirectParser

OTHER = 9
"""A subscription that nats-py itself serves."""


class Message(NamedTuple):
    sid: int
    subject: bytes
    reply: bytes
    data: bytes
    headers: bytes | None

    @property
    def wire(self) -> bytes:
        words = [self.subject, b"%d" % self.sid, *([self.reply] if self.reply else [])]
        if self.headers is None:
            return b"MSG %s %d\r\n%s\r\n" % (b" ".join(words), len(self.data), self.data)
        sizes = len(self.headers), len(self.headers) + len(self.data)
        return b"HMSG %s %d %d\r\n%s%s\r\n" % (b" ".join(words), *sizes, self.headers, self.data)


class Recorder(_DirectClient):
    def __init__(self, sids: set[int]) -> None:
        super().__init__()
        self.seen: list[Message] = []
        self.pings = 0
        for sid in sids:
            self.direct[sid] = self.handler(sid)

    def handler(self, sid: int) -> OnMessage:
        return lambda subject, reply, data, headers: self.seen.append(Message(sid, subject, reply, data, headers))

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if sid in self.direct:
            await super()._process_msg(sid, subject, reply, data, headers)
        else:
            self.handler(sid)(subject, reply, data, headers)

    async def _process_ping(self) -> None:
        self.pings += 1


LARGE = 300_000
"""More than is put together by the shortcut."""
BODIES = (
    st.binary(max_size=40)
    | st.sampled_from([b"MSG a 1 2\r\n", b"\r\n", b"PING\r\n", b"HMSG "])
    | st.sampled_from([b"MSG a 1 2\r\n" * 30_000, b"x" * LARGE])
)
MESSAGES = st.builds(
    Message,
    st.sampled_from([1, 2, OTHER]),
    st.sampled_from([b"a", b"$KV.ojs.job.x"]),
    st.sampled_from([b"", b"_INBOX.1.2"]),
    BODIES,
    st.none() | st.sampled_from([b"NATS/1.0\r\nNats-Sequence: 4\r\n\r\n", b"NATS/1.0 404 No Messages\r\n\r\n"]),
)


@given(st.lists(MESSAGES, max_size=8), st.lists(st.integers(1, 60) | st.integers(1, LARGE), max_size=30), st.integers(0, 8))
@example([Message(1, b"a", b"", b"MSG a 1 0\r\n", None)], [9], 0)
def test_every_message_arrives_once_whole_and_in_order(messages: list[Message], cuts: list[int], ping: int) -> None:
    wire = [message.wire for message in messages]
    wire.insert(min(ping, len(wire)), b"PING\r\n")
    stream = b"".join(wire)
    client = Recorder({1, 2})

    async def read() -> None:
        place = 0
        for size in [*cuts, len(stream)]:
            await client._ps.parse(stream[place : place + size])
            place += size

    asyncio.run(read())
    assert client.seen == messages
    assert client.pings == 1


@pytest.mark.parametrize("line", [b"MSG a\r\n", b"MSG a 1 many\r\n", b"HMSG a one 0 0\r\n\r\n"])
async def test_what_is_no_message_ends_the_connection_as_nats_py_knows_it(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        await _DirectParser(Recorder({1})).parse(line)


async def test_a_handler_that_fails_keeps_nobody_from_the_next_message() -> None:
    client = Recorder({1})

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    client.direct[2] = fail
    good = Message(1, b"a", b"", b"x", None)
    await client._ps.parse(good._replace(sid=2).wire + good.wire)
    assert client.seen == [good]


async def test_messages_that_are_cut_by_every_read_take_the_shortcut() -> None:
    slow: list[int] = []

    class Unparsed(Recorder):
        async def _process_msg(self, sid: int, *_: object) -> None:
            slow.append(sid)

    client = Unparsed({1})
    messages = [Message(1, b"a", b"", b"x" * 50, None) for _ in range(200)]
    stream = b"".join(message.wire for message in messages)
    for place in range(0, len(stream), 101):
        await client._ps.parse(stream[place : place + 101])
    assert (client.seen, slow) == (messages, [])


async def test_after_a_large_message_the_shortcut_is_taken_again() -> None:
    client = Recorder({1})
    large, small = (Message(1, b"a", b"", b"x" * size, None) for size in (LARGE, 50))
    stream = large.wire + small.wire * 3
    for place in range(0, len(stream), 32_768):
        await client._ps.parse(stream[place : place + 32_768])
    assert client.seen == [large, small, small, small]
    assert not client._ps.buf
