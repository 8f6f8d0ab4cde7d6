"""Storing entries of the audit. Whatever becomes of that, nobody who asks waits long for it."""

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

from ojs_core.audit.entry import UNKNOWN, Entry, encode
from ojs_core.audit.repeats import Repeats
from ojs_core.base.errors import OjsError
from ojs_core.base.ids import new_request_id
from ojs_core.base.loops import start_loop, stop_loop
from ojs_core.base.waiting import within
from ojs_core.jetstream.api import put_once
from ojs_core.jetstream.connection import Connection
from ojs_core.jetstream.subjects import StoreConfig, encode_token
from ojs_core.telemetry import metrics

log = structlog.get_logger(__name__)

MOST: Final = 1_000
"""Entries that wait to be stored."""
_AT_ONCE: Final = 50
HOLD_S: Final = 1.0
"""How long an answer is held up for its entry to be stored."""
_LAST_S: Final = 0.5
"""What is left of a process's end for entries that wait."""
_IDLE_S: Final = 3_600.0


class _Waiting:
    __slots__ = ("entry", "id", "stored")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.id = new_request_id()
        self.stored = asyncio.Event()


class Trail:
    """The stream of entries, as one process adds to it.

    While NATS can't store them, up to `most` entries wait in memory; those beyond are written to the log alone, as warnings.
    """

    def __init__(
        self,
        nats: Connection,
        config: StoreConfig,
        *,
        hold_s: float = HOLD_S,
        most: int = MOST,
        repeats: Repeats | None = None,
    ) -> None:
        self._nats = nats
        self._config = config
        self._hold_s = hold_s
        self._most = most
        self._repeats = repeats or Repeats()
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def start(self) -> None:
        self._task = start_loop("audit", self._turn, tell=False)

    async def stop(self) -> None:
        """Store what waits, or log it if that can't be done soon."""
        await stop_loop(self._task)
        for entry in self._repeats.over(inf):
            self.note(entry)
        try:
            async with asyncio.timeout(_LAST_S):
                while self._waiting:
                    await self._store()
        except (OjsError, TimeoutError):
            for waiting in self._waiting:
                _lose(waiting.entry)
            self._waiting.clear()

    def note(self, entry: Entry) -> asyncio.Event | None:
        """Have an entry stored soon; the event is set when it is. None if too many wait already."""
        if len(self._waiting) >= self._most:
            _lose(entry)
            return None
        waiting = _Waiting(entry)
        self._waiting.append(waiting)
        self._wake.set()
        return waiting.stored

    async def keep(self, entry: Entry) -> None:
        """Store an entry, and return when it is stored, or after a moment: then it is stored later."""
        stored = self.note(entry)
        if stored is not None and not await within(self._hold_s, stored):
            metrics.audited("late")

    def note_repeated(self, key: Hashable, entry: Entry) -> None:
        """As `note`, for what somebody may do as often as he likes: the first time a minute, and then how often."""
        if self._repeats.is_first(key, entry, self._now()):
            self.note(entry)
        self._wake.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _turn(self) -> None:
        """Wait for entries and store them. Raises OjsError if they can't be stored now; they stay."""
        if not self._waiting:
            until = self._repeats.next_end
            await within(_IDLE_S if until is None else max(until - self._now(), 0), self._wake)
        self._wake.clear()
        for entry in self._repeats.over(self._now()):
            self.note(entry)
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
                waiting.stored.set()
                metrics.audited("stored")
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
    metrics.audited("lost")
    members = asdict(entry) | {"detail": asdict(entry.detail)}
    log.warning("entry of the audit not stored", **{f"audit_{name}": value for name, value in members.items()})
