"""Documents: the small records that are changed by compare-and-swap, all kinds by one mechanism.

A document is read on the leader through the one guard of its kind, changed by a pure decision, and written over the
revision that the decision saw. Whoever loses against another write reads and decides again, with a pause that grows,
for as long as the budget lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from ojs_engine.domain.transitions import Moment
from ojs_engine.jetstream.reading import RecordReader, Unreadable
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.writer import Conflict, Hint, Overtaken, Write

T = TypeVar("T")

_encode: Final = msgspec.json.Encoder().encode


class Beside(Struct, frozen=True, kw_only=True):
    """What goes with a write: how long the document stays (seconds), a timer ahead of it, the subject of one that it ends."""

    ttl_s: int | None = None
    arm: Hint | None = None
    cancel: str | None = None


NOTHING_BESIDE: Final = Beside()


class Changed(NamedTuple, Generic[T]):
    """A document before and after a change, one object if it was left as it was."""

    revision: int
    old: T | None
    new: T | None


class Documents(Generic[T]):
    """The documents of one kind.

    `subject` makes the subject of a key. `carries` says of a stored document whether it is, or comes after, the change of an
    `op`: it is asked when an answer was lost.
    """

    def __init__(
        self, bucket: Bucket, subject: Callable[[str], str], reader: RecordReader[T], carries: Callable[[T, str], bool]
    ) -> None:
        self._records = bucket.records
        self._writer = bucket.writer
        self._clock = bucket.clock
        self._tries = bucket.tries
        self.subject = subject
        self._prefix = len(subject(""))
        self._reader = reader
        self._carries = carries

    async def read(self, key: str) -> tuple[int, T | None]:
        """The last word on a document, and its revision (0: nothing). Raises OjsError unreadable_record."""
        return self.found(key, await self._records.latest_raw(self.subject(key)))

    def found(self, key: str, raw: tuple[int, bytes] | None) -> tuple[int, T | None]:
        """The same, of what was read already."""
        revision, body = raw or (0, b"")
        return revision, self._reader.demand(self._token(key), revision, body) if body else None

    async def write(
        self, key: str, new: T, expected: int, op: str, beside: Beside = NOTHING_BESIDE, *, among: str | None = None
    ) -> int:
        """Store a document over a revision, or over the last one under the wildcard `among`; returns its own.

        Raises Conflict if another write was faster (Overtaken if this one may have been before it), OjsError
        backend_unavailable, which may leave it open.
        """
        return await self._writer.write(self.as_write(key, new, expected, op, beside, among=among))

    def as_write(
        self, key: str, new: T, expected: int, op: str, beside: Beside = NOTHING_BESIDE, *, among: str | None = None
    ) -> Write:
        """The same write, for whoever sends it together with others."""
        subject = self.subject(key)
        token = self._token(key)

        def mine(body: bytes) -> bool:
            try:
                return self._carries(self._reader.decode(token, body), op)
            except Unreadable:
                return False

        return Write(
            subject,
            _encode(new),
            expected,
            mine,
            hints=() if beside.arm is None else (beside.arm,),
            among=among,
            cancel=beside.cancel,
            ttl_s=beside.ttl_s,
        )

    async def change(
        self,
        key: str,
        decide: Callable[[T | None, Moment], T | None],
        beside: Callable[[T | None, T], Beside] = lambda _old, _new: NOTHING_BESIDE,
        *,
        budget_s: float | None = None,
        once: bool = False,
    ) -> Changed[T]:
        """Write what a pure decision makes of a document; None leaves it as it is.

        Raises whatever `decide` raises, OjsError backend_unavailable, and Overtaken if it is to be written `once` and
        may have been.
        """
        async for _ in self._tries(budget_s):
            revision, old = await self.read(key)
            moment = self._clock.moment()
            new = decide(old, moment)
            if new is None:
                return Changed(revision, old, old)
            try:
                revision = await self.write(key, new, revision, moment.op, beside(old, new))
            except Conflict as conflict:
                if once and isinstance(conflict, Overtaken):
                    raise
                continue
            return Changed(revision, old, new)
        raise contended(f"the {self._reader.kind} record {key!r}")

    def _token(self, key: str) -> str:
        return self.subject(key)[self._prefix :]
