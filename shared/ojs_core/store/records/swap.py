"""Compare-and-swap of a record that isn't a job's, with its timer ahead of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from ojs_core.base.errors import OjsError, unavailable
from ojs_core.jetstream.api import PubAck, purge_unheard, refused
from ojs_core.jetstream.connection import Connection, Failed, ReplyOrFailure
from ojs_core.jetstream.headers import expecting, record_headers, schedule
from ojs_core.store.records.answers import FIRST_PAUSE_S, LAST_PAUSE_S, ack_of, failure, pause_or_raise
from ojs_core.store.records.commit import COMMIT_DEADLINE_S, Conflict
from ojs_core.store.records.records import Records


class Overtaken(Conflict):
    """Another write is there, and since an answer was lost nobody knows whether this one was before it."""


class Alarm(Struct, frozen=True):
    """A timer: a message that appears on `target` at `at` (Unix ms). `subject` is used once."""

    subject: str
    target: str
    at: int

    @property
    def headers(self) -> str:
        return schedule(self.at, self.target)


class Swap(Struct, frozen=True, kw_only=True):
    """One write of a record over its revision `expected` (0: none), or over the last one under the wildcard `among`.

    `mine` says of a stored body whether it is this one or comes after it; it is asked when an answer was lost.
    """

    subject: str
    body: bytes
    expected: int
    mine: Callable[[bytes], bool]
    among: str | None = None
    arm: Alarm | None = None
    cancel: str | None = None
    """Subject of the timer that the record's message purges."""
    ttl_s: int | None = None

    @property
    def headers(self) -> str:
        return record_headers(self.expected, self.cancel, self.ttl_s, self.among)


class Swapper:
    """Writes swaps; any number at once."""

    def __init__(self, nats: Connection, records: Records, stream: str) -> None:
        self._nats = nats
        self._records = records
        self._stream = stream

    async def swap(self, swap: Swap) -> int:
        """The record's new sequence once it and its timer are stored.

        Raises Conflict if another write was faster (Overtaken if this one may have been before it), OjsError
        backend_unavailable, which may leave it open.
        """
        deadline = _now() + COMMIT_DEADLINE_S
        pause = FIRST_PAUSE_S
        unsure = False
        while True:
            # One socket write, and one stream: a crash leaves a timer too many, never a record without.
            timer = None if swap.arm is None else self._nats.request(swap.arm.subject, b"", swap.arm.headers)
            record = ack_of(await self._nats.request(swap.subject, swap.body, swap.headers))
            if isinstance(record, PubAck) and record.error is None:
                await self._secure(swap.arm, timer, deadline)
                return record.seq
            if isinstance(record, Failed):
                unsure = unsure or record.sent
            elif not record.conflict and record.error is not None and record.error.code != 503:
                self._withdraw(swap, unsure)
                raise refused("a record", record.error)
            if unsure:
                sequence = await self._look(swap)
                if sequence:
                    await self._secure(swap.arm, timer, deadline)
                    return sequence
            elif isinstance(record, PubAck) and record.conflict:
                self._withdraw(swap, unsure)
                raise Conflict
            if _now() + pause > deadline or not self._nats.connected:
                self._withdraw(swap, unsure)
                raise failure("a record", record)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE_S)

    async def set(self, alarm: Alarm) -> None:
        """Set a timer again that fired early; one that is live stays as it is. Raises OjsError backend_unavailable."""
        ack = ack_of(await self._nats.request(alarm.subject, b"", alarm.headers + expecting(0)))
        if isinstance(ack, Failed):
            raise unavailable(f"a timer was not set: {ack.reason}")
        if ack.error is not None and not ack.conflict:
            raise refused("a timer", ack.error)

    def unset(self, subject: str) -> None:
        """Purge a timer that isn't needed any more; if that is lost, its message says nothing new."""
        purge_unheard(self._nats, self._stream, subject)

    async def _look(self, swap: Swap) -> int:
        """The sequence if the swap is stored, 0 if its place is still free; Overtaken otherwise."""
        sequence, data = await self._records.leader_raw(swap.among or swap.subject) or (0, b"")
        if data and swap.mine(data):
            return sequence
        if sequence == swap.expected:
            return 0
        self._withdraw(swap, unsure=False)
        raise Overtaken

    async def _secure(self, alarm: Alarm | None, timer: asyncio.Future[ReplyOrFailure] | None, deadline: float) -> None:
        """See the timer stored: its record is, and may not stay without."""
        if alarm is None or timer is None:
            return
        ack = ack_of(await timer)
        if isinstance(ack, PubAck) and ack.error is None:
            return
        pause = FIRST_PAUSE_S
        while True:
            try:
                await self.set(alarm)
            except OjsError as error:
                pause = await pause_or_raise(self._nats, pause, deadline, error)
            else:
                return

    def _withdraw(self, swap: Swap, unsure: bool) -> None:
        """Take the timer of a record back that certainly won't be."""
        if swap.arm is not None and not unsure:
            self.unset(swap.arm.subject)


def _now() -> float:
    return asyncio.get_running_loop().time()
