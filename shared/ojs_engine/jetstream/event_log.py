"""Writing the event stream as its one relay: fenced appends, and what was appended last.

What the relay appends carries `Ojs-Entry`; what others publish on the same subjects does not.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ojs_engine.base.errors import unavailable
from ojs_engine.jetstream.api import parse_ack, refused
from ojs_engine.jetstream.connection import Connection, Failed, header
from ojs_engine.jetstream.contents import Message, message, stream_info, subjects_of
from ojs_engine.jetstream.subjects import ANY, StoreConfig, Wildcard
from ojs_link.timings import Timings


class EventLogTimings(Timings, frozen=True, kw_only=True):
    """How events are appended."""

    append_s: float = 5.0
    """How long nats-server may take to store some."""
    few: int = 8
    """So many cost less one by one than as an atomic batch, for which nats-server makes files (docs/adr/007)."""
    foreign: int = 500
    """Messages of others between two appends that are read; more end the relay's term."""


class Outgoing(Struct, frozen=True):
    """An event on its way, and where it comes from: the job's creation time and log entry, and the revision's sequence."""

    subject: str
    body: bytes
    created_at: int
    entry: int
    sequence: int


class Appended(Struct, frozen=True):
    """The last entry of a job that was appended, of the job that was created at `created_at` under its id."""

    created_at: int
    entry: int


class Fenced(Exception):
    """Somebody else has relayed events since: the tenure is over."""


class EventLog:
    """One writer's view of the event stream; `nats` should be its own, since appends are large."""

    def __init__(self, nats: Connection, config: StoreConfig, timings: EventLogTimings = EventLogTimings()) -> None:
        self._timings = timings
        self._nats = nats
        self._config = config
        self._prefix = secrets.token_hex(6)
        self._batches = itertools.count(1)

    async def last_sequence(self) -> int:
        """Sequence of the last message of the stream, whoever wrote it."""
        return (await stream_info(self._nats, self._config.events_stream)).state.last_seq

    async def last_of(self, job_id: str) -> Appended | None:
        """What was appended last of a job, as the stream's leader has it."""
        every = self._config.event(Wildcard("*.*"), ANY, job_id)
        last = await self._message({"last_by_subj": every})
        if last is None or (appended := _appended(last)) is not None:
            return None if last is None else appended
        subjects = await subjects_of(self._nats, self._config.events_stream, every)
        found = await asyncio.gather(*(self._message({"last_by_subj": subject}) for subject in subjects))
        relayed = [(one.seq, appended) for one in found if one is not None and (appended := _appended(one)) is not None]
        return max(relayed)[1] if relayed else None

    async def append(self, events: Sequence[Outgoing], after: int, *, apart: bool = False) -> int:
        """Store events behind sequence `after`; returns the new last sequence. All are stored or none, unless they may come
        `apart`: then a few are stored one after the other, each behind the one before.

        What others publish without a relay may lie between. Raises `Fenced`, or OjsError backend_unavailable, which
        leaves it open whether the events were stored.
        """
        parts = [[event] for event in events] if apart and len(events) <= self._timings.few else [events]
        for part in parts:
            after = await self._store(part, after)
        self._nats.publish(self._config.events_stored, b"")
        return after

    async def _store(self, events: Sequence[Outgoing], after: int) -> int:
        while True:
            ack = parse_ack(await self._send(events, after))
            if ack.error is None:
                return ack.seq
            if not ack.conflict:
                raise refused("events", ack.error)
            after = await self._behind_others(after)

    async def _send(self, events: Sequence[Outgoing], after: int) -> bytes:
        """One atomic batch, the condition on its first message: it leaves in one write, so nothing comes between."""
        batch = f"{self._prefix}{next(self._batches)}"
        answer: asyncio.Future[Any] | None = None
        for place, event in enumerate(events, 1):
            headers = f"Ojs-Entry: {event.entry}\r\nOjs-Seq: {event.sequence}\r\nOjs-Created: {event.created_at}\r\n"
            if place == 1:
                headers += f"Nats-Expected-Last-Sequence: {after}\r\n"
            if len(events) > 1:
                headers += f"Nats-Batch-Id: {batch}\r\nNats-Batch-Sequence: {place}\r\n"
            if place < len(events):
                self._nats.publish(event.subject, event.body, headers)
            else:
                if len(events) > 1:
                    headers += "Nats-Batch-Commit: 1\r\n"
                answer = self._nats.request(event.subject, event.body, headers, self._timings.append_s)
        assert answer is not None, "nothing to append"
        outcome = await answer
        if isinstance(outcome, Failed):
            raise unavailable(f"events can't be stored: {outcome.reason}")
        return bytes(outcome.data)

    async def _behind_others(self, after: int) -> int:
        """The last sequence, if all that came since `after` was published without a relay."""
        last = await self.last_sequence()
        if last < after or last - after > self._timings.foreign:
            raise Fenced
        found = await asyncio.gather(*(self._message({"seq": number}) for number in range(after + 1, last + 1)))
        if any(other is not None and _appended(other) is not None for other in found):
            raise Fenced
        return last

    async def _message(self, which: dict[str, Any]) -> Message | None:
        return await message(self._nats, self._config.events_stream, which, "events")


def _appended(stored: Message) -> Appended | None:
    """What a stored message says of its job, if the relay wrote it."""
    entry = header(stored.hdrs, b"Ojs-Entry")
    return None if entry is None else Appended(int(header(stored.hdrs, b"Ojs-Created") or 0), int(entry or 0))
