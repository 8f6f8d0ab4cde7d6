"""A role that one process holds: a record that its holder renews, and others take over when it grows old.

The lease only decides who tries. What the role writes must be fenced by itself, because a holder that was stopped does not
know that it has lost the role.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ojs_engine.base.numbers import Whole
from ojs_engine.jetstream.api import put_if
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.contents import message
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import StoreConfig


class _Body(Struct, frozen=True):
    holder: str
    done: Whole


_reader: Final = RecordReader("relay", msgspec.json.Decoder(_Body).decode)


class LeaseState(NamedTuple):
    """The lease as its record says: revision, when it was written (server time, Unix ms), by whom (empty: it was given up),
    and the holder's checkpoint.
    """

    sequence: int
    at: int
    holder: str
    done: int


NEVER_HELD: Final = LeaseState(0, 0, "", 0)


class Lease:
    """Record `$KV.ojs.relay.<role>`."""

    def __init__(self, nats: Connection, config: StoreConfig, role: str) -> None:
        self._nats = nats
        self._stream = config.records_stream
        self._role = role
        self._subject = config.record("relay", role)

    async def read(self) -> LeaseState:
        """As the leader has it. Raises OjsError backend_unavailable."""
        found = await message(self._nats, self._stream, {"last_by_subj": self._subject}, "a lease")
        if found is None:
            return NEVER_HELD
        body = _reader.read(self._role, found.seq, found.data)
        if body is None or body.done >= found.seq:  # nonsense: whoever takes it next writes it anew
            return NEVER_HELD._replace(sequence=found.seq)
        return LeaseState(found.seq, found.at, body.holder, body.done)

    async def write(self, expected: int, holder: str, done: int) -> int | None:
        """Write the lease over its revision `expected`; the new revision, or None if somebody else has written it since."""
        body = msgspec.json.encode(_Body(holder, done))
        return await put_if(self._nats, self._subject, body, expected, "a lease")
