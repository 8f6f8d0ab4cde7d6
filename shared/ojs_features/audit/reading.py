"""Reading the audit, the newest first or on from an entry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
import structlog
from msgspec import Struct

from ojs_engine.jetstream.connection import Connection, Reply
from ojs_engine.jetstream.contents import messages, sequence_of, stream_info
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_features.audit.entry import Entry, Outcome, decode
from ojs_features.audit.trail import AuditTimings

log = structlog.get_logger(__name__)

_READ: Final = 500
"""Entries read at a time."""
_READS: Final = 20
"""How often one question reads."""
_READ_BYTES: Final = 4 * 1024 * 1024
_WHAT: Final = "the audit"


class Wanted(Struct, frozen=True, kw_only=True):
    """Which entries somebody asks for; None for all.

    `event_type` may end in `.*`, `principal` is a name or an id, `target` is what anything of an entry's target is. `since` and
    `until` in Unix ms, both included.
    """

    event_type: str | None = None
    principal: str | None = None
    operation: str | None = None
    target: str | None = None
    outcome: Outcome | None = None
    since: int | None = None
    until: int | None = None

    def admits(self, entry: Entry) -> bool:
        """Whether an entry is asked for."""
        detail = entry.detail
        return (
            (self.event_type is None or _is_of(entry.event_type, self.event_type))
            and self.principal in {None, entry.principal, detail.principal_id}
            and self.operation in {None, detail.operation}
            and (self.target is None or self.target in detail.target.values())
            and self.outcome in {None, entry.outcome}
        )


class Read(NamedTuple):
    """An entry with its place in the stream."""

    sequence: int
    entry: Entry


class Page(NamedTuple):
    """Entries, and the place to go on from. `last` is that of the last entry there is."""

    entries: list[Read]
    place: int
    has_more: bool
    last: int


class AuditReader:
    """Reads entries. `nats` carries pages of up to 4 MB."""

    def __init__(self, nats: Connection, config: StoreConfig, timings: AuditTimings = AuditTimings()) -> None:
        self._read_s = timings.read_s
        self._nats = nats
        self._config = config

    async def older(self, before: int | None, wanted: Wanted, limit: int) -> Page:
        """Up to `limit` entries ahead of a place (None: of the end), the newest first.

        Nothing is ever taken out of the stream, so a range of its sequences is read as a whole. A page may be short of entries
        although there are more, since a question looks through a bounded number. Raises OjsError backend_unavailable.
        """
        state = (await stream_info(self._nats, self._config.audit_stream)).state
        end = state.last_seq + 1 if before is None else min(before, state.last_seq + 1)
        if wanted.until is not None:
            end = min(end, await self._first_at(wanted.until + 1, state.last_seq + 1))
        first = state.first_seq
        if wanted.since is not None:
            first = max(first, await self._first_at(wanted.since, state.last_seq + 1))
        found: list[Read] = []
        for _ in range(_READS):
            begin = max(first, end - _READ)
            if begin >= end:
                return Page(found, end, has_more=False, last=state.last_seq)
            for read in reversed(await self._between(begin, end)):
                if wanted.admits(read.entry):
                    found.append(read)
                    if len(found) == limit:
                        return Page(found, read.sequence, has_more=read.sequence > first, last=state.last_seq)
            end = begin
        return Page(found, end, has_more=end > first, last=state.last_seq)

    async def newer(self, after: int, wanted: Wanted, limit: int) -> Page:
        """Up to `limit` entries behind a place, the oldest first; of those looked at, `place` is the last.

        Raises OjsError backend_unavailable.
        """
        state = (await stream_info(self._nats, self._config.audit_stream)).state
        begin, end = max(after + 1, state.first_seq), state.last_seq + 1
        if wanted.since is not None:
            begin = max(begin, await self._first_at(wanted.since, end))
        if wanted.until is not None:
            end = min(end, await self._first_at(wanted.until + 1, end))
        found: list[Read] = []
        for _ in range(_READS):
            if begin >= end:
                break
            upto = min(begin + _READ, end)
            for read in await self._between(begin, upto):
                if wanted.admits(read.entry):
                    found.append(read)
                    if len(found) == limit:
                        return Page(found, read.sequence, has_more=read.sequence + 1 < end, last=state.last_seq)
            begin = upto
        return Page(found, max(begin - 1, after), has_more=begin < end, last=state.last_seq)

    async def _between(self, begin: int, end: int) -> list[Read]:
        """The entries of a range of sequences, without its end."""
        found: list[Read] = []
        while begin < end:
            which = {"next_by_subj": self._config.audit, "seq": begin, "batch": end - begin, "max_bytes": _READ_BYTES}
            batch, _ = await messages(self._nats, self._config.audit_stream, which, _WHAT, self._read_s)
            if not batch:
                break
            found += _readable(batch, end)
            begin = sequence_of(batch[-1]) + 1
        return found

    async def _first_at(self, at: int, otherwise: int) -> int:
        """The sequence of the first entry that was stored at a time (Unix ms) or later."""
        stamp = datetime.fromtimestamp(at / 1_000, UTC).isoformat().replace("+00:00", "Z")
        which = {"next_by_subj": self._config.audit, "start_time": stamp, "batch": 1}
        batch, _ = await messages(self._nats, self._config.audit_stream, which, _WHAT, self._read_s)
        return sequence_of(batch[0]) if batch else otherwise


def _readable(batch: Sequence[Reply], end: int) -> list[Read]:
    found: list[Read] = []
    for message in batch:
        sequence = sequence_of(message)
        if sequence >= end:
            continue
        try:
            found.append(Read(sequence, decode(message.data)))
        except (msgspec.MsgspecError, UnicodeError):
            log.warning("an entry of the audit can't be read", sequence=sequence)
    return found


def _is_of(event_type: str, wanted: str) -> bool:
    return event_type.startswith(wanted[:-1]) if wanted.endswith(".*") else event_type == wanted
