"""A role that one process holds: a record that its holder renews, and others take over when it grows old.

The lease only decides who tries. What the role writes must be fenced by itself, because a holder that was stopped does not
know that it has lost the role.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ojs_nats.store.api import message, put_if
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig

__all__ = ["Held", "Lease"]


class _Body(Struct, frozen=True):
    holder: str
    done: int


class Held(NamedTuple):
    """The lease as its record says: revision, when it was written (server time, Unix ms), by whom (empty: it was given up),
    and the holder's checkpoint.
    """

    sequence: int
    at: int
    holder: str
    done: int


NEVER_HELD: Final = Held(0, 0, "", 0)


class Lease:
    """Record `$KV.ojs.relay.<role>`."""

    def __init__(self, link: Link, config: StoreConfig, role: str) -> None:
        self._link = link
        self._stream = config.records_stream
        self._subject = config.record("relay", role)

    async def read(self) -> Held:
        """As the leader has it. Raises OjsError backend_unavailable."""
        found = await message(self._link, self._stream, {"last_by_subj": self._subject}, "a lease")
        if found is None:
            return NEVER_HELD
        body = msgspec.json.decode(found.data, type=_Body)
        return Held(found.seq, found.at, body.holder, body.done)

    async def write(self, expected: int, holder: str, done: int) -> int | None:
        """Write the lease over its revision `expected`; the new revision, or None if somebody else has written it since."""
        body = msgspec.json.encode(_Body(holder, done))
        return await put_if(self._link, self._subject, body, expected, "a lease")
