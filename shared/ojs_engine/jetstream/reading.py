"""The one guard between the bucket and everything that trusts a record (docs/adr/028).

Whoever can write to NATS can store anything under any key, and an older or newer version of this program may. A
`RecordReader` says of one kind of record whether a body is what its key says: well-formed, of the right type, every number
within its bounds, and named as its key names it. What passes can be rendered, indexed, relayed and acted on; what doesn't is
an `Unreadable`, which is passed over alone: counted, named in the log once for each revision, and listed and removed by the
admin API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.lru import Lru
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.telemetry import metrics

log = structlog.get_logger(__name__)

T = TypeVar("T")

FORMAT: Final = 1
"""The newest form of records that this version reads. A record whose form an older version would misread names its own,
in the member `record_format`; without one it is of the first (docs/adr/084).
"""
_NAMES_ITS_FORMAT: Final = b'"record_format"'

RECORD_ERRORS: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What work on a record raises that is wrong in a way that nobody thought of. msgspec's errors are ValueErrors."""
_REMEMBERED: Final = 10_000
"""Revisions that a process doesn't name again."""
_LONGEST: Final = 200

_named: Final[Lru[bool]] = Lru(_REMEMBERED)


class Unreadable(ValueError):
    """A record that is not what its key says; `problem` is for people."""

    def __init__(self, kind: str, name: str, problem: str) -> None:
        problem = problem[:_LONGEST]
        super().__init__(problem)
        self.kind = kind
        self.name = name
        self.problem = problem

    def note(self, sequence: int) -> None:
        """Count and log it, unless this process has done so for this revision."""
        known = (self.kind, self.name, sequence)
        if _named.get(known) is None:
            _named.put(known, value=True, size=1)
            metrics.UNREADABLE.labels(self.kind).inc()
            log.error("record can't be read", kind=self.kind, key=self.name[:_LONGEST], sequence=sequence, problem=self.problem)

    @property
    def refusal(self) -> OjsError:
        """For a request that is about this record and no other."""
        return OjsError(
            "unreadable_record",
            f"the {self.kind} record {self.name[:_LONGEST]} can't be read: {self.problem}",
            details={"kind": self.kind, "key": self.name[:_LONGEST]},
        )


class _Formatted(msgspec.Struct, frozen=True):
    record_format: int = FORMAT


_format_of: Final = msgspec.json.Decoder(_Formatted).decode


class RecordReader(Generic[T]):
    """Reads one kind of record by a decoder of JSON. `sound` raises ValueError, or OjsError, for what no type says of it.

    `foreign` records are as a client wrote them, and have no form of ours.
    """

    def __init__(
        self,
        kind: str,
        decode: Callable[[bytes], T],
        sound: Callable[[str, T], None] = lambda _name, _record: None,
        *,
        foreign: bool = False,
        belongings: Callable[[StoreConfig, str], list[str]] = lambda _config, _name: [],
    ) -> None:
        """`belongings` returns the subjects of what else is stored under a record's name, and of no use without it."""
        self.kind: Final = kind
        self.belongings: Final = belongings
        self._foreign = foreign
        self._decode = decode
        self._sound = sound

    def decode(self, name: str, body: bytes) -> T:
        """The record under a key's `name`. Raises Unreadable."""
        try:
            if not body.isascii():
                str(body, "utf-8")  # msgspec leaves the inside of Raw members unchecked
            if _NAMES_ITS_FORMAT in body and not self._foreign and (form := _format_of(body).record_format) > FORMAT:
                raise ValueError(
                    f"it is of format {form}, and this version reads up to {FORMAT}: a newer version has written it, upgrade"
                )
            record = self._decode(body)
            self._sound(name, record)
        except OjsError as error:
            raise Unreadable(self.kind, name, error.message) from None
        except RECORD_ERRORS as error:
            raise Unreadable(self.kind, name, str(error) or type(error).__name__) from None
        return record

    def read(self, name: str, sequence: int, body: bytes) -> T | None:
        """The same; None for what can't be read, which is noted."""
        try:
            return self.decode(name, body)
        except Unreadable as problem:
            problem.note(sequence)
            return None

    def demand(self, name: str, sequence: int, body: bytes) -> T:
        """The same, for a request that can't do without. Raises OjsError unreadable_record."""
        try:
            return self.decode(name, body)
        except Unreadable as problem:
            problem.note(sequence)
            raise problem.refusal from None
