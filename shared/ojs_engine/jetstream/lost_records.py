"""Records that a process knows and NATS has lost: kept, written back and reported (docs/adr/028).

A record that is deleted leaves a trace for an hour: the record that says so, or a marker. One that is gone without
a trace was lost, as with a damaged file or in a power cut. What it restricted must not be permitted because of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

import msgspec
import structlog
from msgspec import Struct

from ojs_engine.base.errors import OjsError
from ojs_engine.base.portions import in_portions
from ojs_engine.jetstream.api import put_if
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.contents import Message, message, stream_info
from ojs_engine.jetstream.subjects import REST, StoreConfig
from ojs_engine.telemetry import metrics
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

_MOST_NAMES: Final = 100
_SHOWN: Final = 5
_READS: Final = 32
_WHAT: Final = "a record that NATS has lost"


class LostRecordTimings(Timings, frozen=True, kw_only=True):
    """When a record that is gone was lost."""

    trace_s: float = 3_600.0
    """How long the trace of a deleted record stays."""
    margin_s: float = 60.0
    """A process that heard nothing for that time but this much can't tell."""
    order: ClassVar[Order] = (("margin_s", "trace_s", "no process could tell"),)


class Known(NamedTuple):
    """A record that a process knows. `at` is when it was stored (server time, Unix ms), 0 if unknown."""

    sequence: int
    body: bytes
    at: int


_NOTHING: Final = Known(0, b"", 0)
Lasts = Callable[[str, Known], int | None]
"""(subject, record) -> the seconds that the record has left, none or fewer if its time is over; None if it stays."""


def stays(_subject: str, _known: Known) -> None:
    """Return that a record has no end of its own."""


class _End(Struct, frozen=True):
    """The members by which records say that they are deleted."""

    deleted: bool = False
    state: str = ""


_end_of: Final = msgspec.json.Decoder(_End).decode


def _has_ended(body: bytes) -> bool:
    try:
        end = _end_of(body)
    except (msgspec.MsgspecError, UnicodeError):
        return False
    return end.deleted or end.state == "deleted"


class LostRecords:
    """The records that one process has found to be lost since it was started."""

    def __init__(self, nats: Connection, config: StoreConfig, timings: LostRecordTimings) -> None:
        self._timings = timings
        self._nats = nats
        self._stream = config.records_stream
        self._subject = config.records.removesuffix(REST)
        self._prefix = len(self._subject)
        self._created = ""
        self._names: dict[str, bool] = {}
        self.count = 0

    async def begin(self) -> None:
        """Note which stream the records are in. Raises OjsError backend_unavailable."""
        if not self._created:
            self._created = (await stream_info(self._nats, self._stream)).created

    @property
    def names(self) -> Sequence[str]:
        """Their kinds and keys, 100 at most."""
        return list(self._names)

    @property
    def missing(self) -> Sequence[str]:
        """The names of records that could not be written back, which this process alone knows."""
        return [name for name, back in self._names.items() if not back]

    async def kept(
        self, known: Mapping[str, Known], found: Mapping[str, Known], away_s: float, lasts: Lasts = stays
    ) -> dict[str, Known]:
        """Return the records that are `known` and that the stream lacks, by what was `found` there.

        `away_s` is for how long this process heard nothing. Beyond an hour a deleted record and a lost one look
        the same. A stream that was made anew is another system's. What `lasts` no longer has left by its own time.
        Raises OjsError backend_unavailable.
        """
        left = {subject: lasts(subject, one) for subject, one in known.items()}
        doubtful = [
            subject
            for subject, one in known.items()
            if _is_doubtful(one, found.get(subject)) and ((left_s := left[subject]) is None or left_s > 0)
        ]
        for name in self.missing:
            self._names[name] = bool(found.get(f"{self._subject}{name}", _NOTHING).body)
        if not doubtful:
            return {}
        await self.begin()
        cut_off = away_s > self._timings.trace_s - self._timings.margin_s
        if cut_off or (await stream_info(self._nats, self._stream)).created != self._created:
            log.warning(
                "records are gone: this process was cut off for an hour, or the stream was made anew",
                names=[subject[self._prefix :] for subject in doubtful[:_SHOWN]],
                number=len(doubtful),
                away_s=round(away_s),
            )
            return {}
        stored = await in_portions(doubtful, self._stored, _READS)
        lost = [(subject, one) for subject, one in zip(doubtful, stored, strict=True) if _lacks(one, known[subject])]
        kept: dict[str, Known] = {}
        for subject, one in lost:
            over = 0 if one is None else one.seq
            kept[subject] = await self._write_back(subject, known[subject], over, left[subject])
        if kept:
            self._tell([subject[self._prefix :] for subject in kept])
        return kept

    async def _stored(self, subject: str) -> Message | None:
        return await message(self._nats, self._stream, {"last_by_subj": subject}, _WHAT)

    async def _write_back(self, subject: str, known: Known, over: int, left_s: int | None) -> Known:
        """Store a record again, unless another process was faster; what stands until there is news of it."""
        written: int | None = None
        with suppress(OjsError):  # there is no room, or this process may not write it: it goes on knowing it
            written = await put_if(self._nats, subject, known.body, over, _WHAT, ttl_s=left_s)
            # Where a file is damaged nats-server takes what it doesn't keep, until it is started again.
            written = written if await self._stored(subject) is not None else None
        name = subject[self._prefix :]
        if name not in self._names:
            self.count += 1
            metrics.record_lost(name.partition(".")[0])
        if len(self._names) < _MOST_NAMES or name in self._names:
            self._names[name] = written is not None
        return Known(written or over, known.body, known.at)

    def _tell(self, names: Sequence[str]) -> None:
        missing = [name for name in names if not self._names.get(name, True)]
        log.error(
            "NATS has lost records that this process knows: it goes by them, and writes them back where it can",
            names=names[:_SHOWN],
            number=len(names),
            not_written_back=len(missing),
        )


def _is_doubtful(known: Known, found: Known | None) -> bool:
    return (found is None or _is_before(found.sequence, found.at, known)) and not _has_ended(known.body)


def _lacks(stored: Message | None, known: Known) -> bool:
    """Whether a stream lacks what is known: it has nothing there, or what was there before."""
    return stored is None or _is_before(stored.seq, stored.at, known)


def _is_before(sequence: int, at: int, known: Known) -> bool:
    """Sequences alone don't say it: a stream that has lost its end gives the same ones again."""
    return sequence <= known.sequence and at < known.at - 1  # the times of two reads of one message differ by rounding
