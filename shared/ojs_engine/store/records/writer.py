"""The write engine: hints, then the record over the revision that was read, then certainty.

A write ends in one of three ways: the record's new sequence, `Conflict`, or OjsError. Only backend_unavailable may
leave it open whether the record was stored. A crash leaves a hint too many, never a record without.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.jetstream.api import ApiError, PubAck, delete_unheard, purge_unheard, refused
from ojs_engine.jetstream.connection import Connection, Failed, ReplyOrFailure
from ojs_engine.jetstream.headers import expecting, record_headers, schedule
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.records.answers import ack_of, failure, pause_or_raise, stored
from ojs_engine.store.records.records import Records
from ojs_engine.store.records.write_timings import WriteTimings

T = TypeVar("T")

SUPERSEDED: Final = 1
"""What takes the place of the sequence of a write that is stored, and was followed by another one before it was heard
of. A record's last sequence is never 1 by then, so nothing can be written over it without reading the record
(docs/adr/004).
"""
CHUNK: Final = 500
"""Messages written, or records read, between two looks at the event loop."""


class Conflict(Exception):
    """Another write was faster: read the record again and decide anew."""


class Overtaken(Conflict):
    """Another write is there, and since an answer was lost nobody knows whether this one was before it."""


class Hint(NamedTuple):
    """A message that goes ahead of a record, which isn't sent before its blob is stored.

    If the record won't be, a timer or blob is purged and a token deleted. A note stays: it may have taken the place
    of the one that a faster write sent. Whatever escapes this is recognised as stale when it is met.
    """

    kind: Literal["timer", "token", "note", "blob"]
    subject: str
    body: bytes = b""
    headers: str = ""

    @property
    def again(self) -> str:
        """The headers of a repetition: a timer that is live stays as it is."""
        return self.headers + expecting(0) if self.kind == "timer" else self.headers

    def there(self, ack: PubAck | Failed) -> bool:
        """Whether an answer says that the hint is stored."""
        return stored(ack) or (self.kind == "timer" and isinstance(ack, PubAck) and ack.conflict)


def alarm(subject: str, target: str, at: int) -> Hint:
    """A message that appears on `target` at `at` (Unix ms). `subject` is used once."""
    return Hint("timer", subject, b"", schedule(at, target))


class Write:
    """One write of a record over its revision `expected` (0: none), or over the last one under the wildcard `among`.

    `mine` says of a stored body whether it is this one or comes after it; it is asked when an answer was lost. The record's
    message purges the timer of the subject `cancel`, and leaves after `ttl_s` seconds; `rings` are the headers of a timer.
    """

    __slots__ = ("_answer", "_answers", "among", "body", "expected", "headers", "hints", "mine", "subject", "unsure", "what")

    def __init__(
        self,
        subject: str,
        body: bytes,
        expected: int,
        mine: Callable[[bytes], bool],
        *,
        hints: Sequence[Hint] = (),
        among: str | None = None,
        cancel: str | None = None,
        ttl_s: int | None = None,
        rings: str = "",
        what: str = "a record",
    ) -> None:
        self.subject = subject
        self.body = body
        self.expected = expected
        self.mine = mine
        self.hints = hints
        self.among = among
        self.headers = record_headers(expected, cancel, ttl_s, among, rings)
        self.what = what
        self.unsure = False
        """Whether one of its messages may have been stored although no answer said so."""
        self._answer: asyncio.Future[ReplyOrFailure] | None = None
        self._answers: list[asyncio.Future[ReplyOrFailure]] = []

    def begin(self, nats: Connection, first: Container[str]) -> None:
        """Send the hints and the record in one socket write, unless a hint of the kinds is to be certain `first`."""
        self._answers = [nats.request(hint.subject, hint.body, hint.headers) for hint in self.hints]
        self._answer = None
        for hint in self.hints:
            if hint.kind in first:
                return
        self.send(nats)

    def send(self, nats: Connection) -> None:
        """Send the record."""
        self._answer = nats.request(self.subject, self.body, self.headers)

    async def answer(self) -> PubAck | Failed | None:
        """To the record; None if it isn't sent."""
        return None if self._answer is None else ack_of(await self._answer)

    async def acks(self) -> list[PubAck | Failed]:
        """The answers to the hints."""
        return [ack_of(await answer) for answer in self._answers]

    async def secure(self, nats: Connection, deadline: float, waits: WriteTimings, kinds: Container[str] | None = None) -> None:
        """Repeat the hints, or those of some kinds, until they are stored. Raises OjsError backend_unavailable."""
        for place, hint in enumerate(self.hints):
            pause = waits.first_pause_s
            while (kinds is None or hint.kind in kinds) and not hint.there(ack := ack_of(await self._answers[place])):
                pause = await pause_or_raise(nats, pause, deadline, failure(self.what, ack), waits.last_pause_s)
                self._answers[place] = nats.request(hint.subject, hint.body, hint.again)

    def refusal(self, error: ApiError) -> OjsError | None:
        """What a refusal comes to; None if it passes: JetStream's own 503s do (elections, a stream not ready yet)."""
        return None if error.code == 503 else refused(self.what, error)


class Writer:
    """Writes records, any number at once."""

    def __init__(self, nats: Connection, records: Records, config: StoreConfig, timings: WriteTimings = WriteTimings()) -> None:
        self._timings = timings
        self._nats = nats
        self._records = records
        self._config = config
        self._first = frozenset({"blob", "token"} if config.replicas > 1 else {"blob"})
        """The kinds of hints that are certain before the record is sent."""

    async def write(self, write: Write) -> int:
        """The record's new sequence once it and its hints are stored; SUPERSEDED if another write came after it.

        Raises Conflict if another write was faster (Overtaken if this one may have been before it), OjsError
        storage_full, or backend_unavailable, which may leave it open.
        """
        self.begin(write)
        return await self.finish(write, _now() + self._timings.deadline_s)

    def begin(self, write: Write) -> None:
        """Send the first messages of a write, which has to be finished.

        Token and record are in different streams. With one server both acks come from the same process; on a cluster
        the token's stream may lose its leader alone, so its ack is awaited before the record is sent.
        """
        write.begin(self._nats, self._first)

    async def finish(self, write: Write, deadline: float, *, look_s: float | None = None) -> int:
        """See a write through that has begun; as `write`. A look for it may take `look_s` in any case (deadline in
        loop time).

        Hints are withdrawn only when it is certain that their record will never be: a write that was not answered may
        be stored even after a look has found its place free.
        """
        try:
            sequence = await self._settle(write, deadline, self._timings.last_pause_s if look_s is None else look_s)
        except Conflict:
            await self._withdraw(write)
            raise
        except OjsError as error:
            if not write.unsure:
                await self._withdraw(write)
            elif error.code != "backend_unavailable":
                raise unavailable(f"whether {write.what} is stored is open: {error.message}") from None
            raise
        if write.hints:
            await write.secure(self._nats, deadline, self._timings)
        return sequence

    async def _settle(self, write: Write, deadline: float, look_s: float) -> int:
        """The record's sequence. What was not stored is tried again as a whole."""
        pause = self._timings.first_pause_s
        while True:
            ack = await write.answer()
            if ack is None:
                await write.secure(self._nats, deadline, self._timings, self._first)
                write.send(self._nats)
                continue
            if isinstance(ack, PubAck) and ack.error is None:
                return ack.seq
            if isinstance(ack, Failed):
                write.unsure = write.unsure or ack.sent
            if write.unsure:
                # This message, or an earlier one of the same write, may have been stored without our hearing of it.
                sequence = await self._look(write, deadline, look_s)
                if sequence:
                    return sequence
            elif isinstance(ack, PubAck) and ack.conflict:
                raise Conflict
            if isinstance(ack, PubAck) and ack.error is not None and not ack.conflict:
                refusal = write.refusal(ack.error)
                if refusal is not None:
                    raise refusal
            if _now() + pause > deadline or not self._nats.connected:
                raise failure(write.what, ack, *await write.acks())
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._timings.last_pause_s)
            self.begin(write)

    async def store(self, hints: Iterable[Hint], deadline: float, *, again: bool = False) -> list[Hint]:
        """Store hints by themselves, in whatever number; those that could not be before the deadline (loop time).

        `again` is for those that were stored before: a timer that is live stays as it is.
        """
        waiting = list(hints)
        pause = self._timings.first_pause_s
        while True:
            sent = [
                (hint, self._nats.request(hint.subject, hint.body, hint.again if again else hint.headers))
                async for hint in paced(waiting)
            ]
            waiting = [hint for hint, answer in sent if not hint.there(ack_of(await answer))]
            if not waiting or _now() + pause > deadline or not self._nats.connected:
                return waiting
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._timings.last_pause_s)
            again = True

    async def set(self, hint: Hint) -> None:
        """Send a hint again by itself; a timer that is live stays as it is. Raises OjsError backend_unavailable."""
        ack = ack_of(await self._nats.request(hint.subject, hint.body, hint.again))
        if not hint.there(ack):
            raise failure(f"a {hint.kind}", ack)

    def purge(self, subject: str) -> None:
        """Take a timer back, or whatever else is not needed any more; if that is lost, it says nothing new."""
        purge_unheard(self._nats, self._config.records_stream, subject)

    async def _look(self, write: Write, deadline: float, look_s: float) -> int:
        """The sequence if the write is stored (SUPERSEDED if another followed), 0 if its place is free; Overtaken otherwise."""
        pause = self._timings.first_pause_s
        while True:
            try:
                found = await self._records.leader_raw(write.among or write.subject, max(deadline - _now(), look_s))
            except OjsError as error:
                pause = await pause_or_raise(self._nats, pause, deadline, error, self._timings.last_pause_s)
                continue
            sequence, body = found or (0, b"")
            if body and write.mine(body):
                # The sequence of a later revision says nothing of what this write stored: a caller would write over content
                # that it has never read.
                return sequence if body == write.body else SUPERSEDED
            if sequence == write.expected:
                return 0
            raise Overtaken

    async def _withdraw(self, write: Write) -> None:
        """Take back the hints of a record that certainly won't be."""
        for hint, ack in zip(write.hints, await write.acks(), strict=True):
            if hint.kind in {"timer", "blob"}:
                self.purge(hint.subject)
            elif hint.kind == "token" and isinstance(ack, PubAck) and ack.error is None:
                delete_unheard(self._nats, self._config.ready_stream, ack.seq)


async def paced(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, with the event loop let in now and then."""
    for number, item in enumerate(items, 1):
        yield item
        if number % CHUNK == 0:
            await asyncio.sleep(0)


def _now() -> float:
    return asyncio.get_running_loop().time()
