"""Stores entries of the audit. An act has a place for its entry before it is done, so that no crowd hides it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from itertools import islice
from math import inf
from typing import Final

import structlog
from msgspec import UNSET
from msgspec.structs import asdict

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.base.ids import new_request_id
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.waiting import within
from ojs_engine.jetstream.api import put_once
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig, encode_token
from ojs_features.audit.entry import UNKNOWN, Entry, encode
from ojs_features.audit.metrics import ENTRIES
from ojs_features.audit.repeats import Acts, Owner, Repeats
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

MOST: Final = 1_000
"""Places for entries that wait to be stored: so many for acts, and so many for all others."""
_AT_ONCE: Final = 250


class AuditTimings(Timings, frozen=True, kw_only=True):
    """How long acts wait for their entries, and how long those of equal acts are one entry."""

    place_s: float = 5.0
    """How long an act waits for a place before it is refused."""
    hold_s: float = 1.0
    """How long an answer is held up for its entry to be stored."""
    last_s: float = 0.5
    """The part of a process's end that is left for entries that wait."""
    window_s: float = 60.0
    """How long acts are counted as one entry after the first."""
    read_s: float = 5.0
    """How long an answer with entries is waited for."""
    fill_s: float = 60.0
    """Between two looks how full the audit is."""


class _Waiting:
    __slots__ = ("entry", "id", "placed", "stored")

    def __init__(self, entry: Entry, *, placed: bool) -> None:
        self.entry = entry
        self.placed = placed
        self.id = new_request_id()
        self.stored = asyncio.Event()


class Trail:
    """The stream of entries, as one process adds to it.

    An act takes one of `most` places, does its work, and leaves its entry there until it is stored. Of entries without
    a place `most` wait as well; those beyond are written to the log alone, as warnings.
    """

    def __init__(
        self,
        nats: Connection,
        config: StoreConfig,
        *,
        timings: AuditTimings = AuditTimings(),
        most: int = MOST,
    ) -> None:
        self._nats = nats
        self._config = config
        self._timings = timings
        self._most = most
        self._places = asyncio.Semaphore(most)
        self._without_place = 0
        self._repeats = Repeats(timings.window_s)
        self._acts = Acts(timings.window_s)
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def start(self) -> None:
        self._task = start_loop("audit", self._turn, tell=False)

    async def stop(self) -> None:
        """Store what waits, or log it if that can't be done soon."""
        await stop_loop(self._task)
        self._note_over(inf)
        try:
            async with asyncio.timeout(self._timings.last_s):
                while self._waiting:
                    await self._store()
        except (OjsError, TimeoutError):
            for waiting in self._waiting:
                _lose(waiting.entry)
                self._left(waiting)
            self._waiting.clear()

    def note(self, entry: Entry) -> asyncio.Event | None:
        """Have an entry stored soon; the event is set when it is. None if too many wait already."""
        if self._without_place >= self._most:
            _lose(entry)
            return None
        self._without_place += 1
        return self._add(entry, placed=False)

    def note_repeated(self, owner: Owner, act: Hashable, entry: Entry) -> None:
        """Note an entry of what anybody may do at any rate: the first time a minute, and then how often."""
        if self._repeats.is_first(owner, act, entry, self._now()):
            self.note(entry)
        self._wake.set()

    # Acts

    async def take_place(self) -> None:
        """Return when there is a place for the entry of an act.

        Raises OjsError backend_unavailable: don't do it now.
        """
        try:
            async with asyncio.timeout(self._timings.place_s):
                await self._places.acquire()
        except TimeoutError:
            raise unavailable(
                f"the audit can't take this act: {self._most:,} entries wait to be stored; nothing was done",
                retry_after=2,
            ) from None

    def leave_place(self) -> None:
        """Give a place back that needs no entry."""
        self._places.release()

    def put(self, entry: Entry) -> asyncio.Event:
        """Have the entry of an act that has a place stored soon; the event is set when it is."""
        return self._add(entry, placed=True)

    async def keep(self, entry: Entry) -> None:
        """Put an entry; return when it is stored, or after a moment: then it is stored later."""
        if not await within(self._timings.hold_s, self.put(entry)):
            ENTRIES.labels("late").inc()

    def counts(self, act: Hashable, entry: Entry) -> bool:
        """Whether the entry of an act is counted with others of the same act, since it is done over and over."""
        counted = not self._acts.is_first(act, entry, self._now())
        self._wake.set()
        return counted

    def _add(self, entry: Entry, *, placed: bool) -> asyncio.Event:
        waiting = _Waiting(entry, placed=placed)
        self._waiting.append(waiting)
        self._wake.set()
        return waiting.stored

    def _left(self, waiting: _Waiting) -> None:
        if waiting.placed:
            self._places.release()
        else:
            self._without_place -= 1

    def _note_over(self, now: float) -> None:
        for entry in (*self._repeats.over(now), *self._acts.over(now)):
            self.note(entry)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _turn(self) -> None:
        """Wait for entries and store them. Raises OjsError if they can't be stored now; they stay."""
        if not self._waiting:
            ends = [one.next_end for one in (self._repeats, self._acts)]
            until = min((end for end in ends if end is not None), default=None)
            await within(None if until is None else max(until - self._now(), 0), self._wake)
        self._wake.clear()
        self._note_over(self._now())
        while self._waiting:
            await self._store()

    async def _store(self) -> None:
        """Store those that have waited longest. Raises OjsError if some have to wait on."""
        several = list(islice(self._waiting, _AT_ONCE))
        outcomes = await asyncio.gather(*map(self._put, several), return_exceptions=True)
        failed: list[tuple[_Waiting, BaseException]] = []
        for waiting, outcome in zip(several, outcomes, strict=True):
            self._waiting.popleft()
            if outcome is None:
                self._left(waiting)
                waiting.stored.set()
                ENTRIES.labels("stored").inc()
            else:
                failed.append((waiting, outcome))
        self._waiting.extendleft(waiting for waiting, _ in reversed(failed))
        self._tell(failed[0][1] if failed else None)
        if failed:
            raise failed[0][1]

    def _tell(self, failure: BaseException | None) -> None:
        """Say once that entries wait, and once that they don't any more."""
        if failure is not None and not self._failing:
            log.warning("the audit can't be stored now: its entries wait in memory", reason=str(failure))
        elif failure is None and self._failing:
            log.info("the audit is stored again")
        self._failing = failure is not None

    async def _put(self, waiting: _Waiting) -> None:
        await put_entry(self._nats, self._config, waiting.entry, waiting.id)


async def put_entry(nats: Connection, config: StoreConfig, entry: Entry, message_id: str) -> None:
    """Store an entry, once under its message's id. Raises OjsError."""
    principal = entry.detail.principal_id
    subject = config.audit_entry(entry.event_type, encode_token(UNKNOWN if principal is UNSET else principal))
    await put_once(nats, subject, encode(entry), message_id, "an entry of the audit")


def _lose(entry: Entry) -> None:
    ENTRIES.labels("lost").inc()
    members = asdict(entry) | {"detail": asdict(entry.detail)}
    log.warning("entry of the audit not stored", **{f"audit_{name}": value for name, value in members.items()})
