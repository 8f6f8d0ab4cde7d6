"""The records of crossings, `crossing.<scope>`: swapped by whoever sees a limit or a bound reached or left (docs/adr/021).

What a process knows of a record holds for a second, so that a flood of jobs under one limit costs one read a second.
Nothing here fails a request: what can't be noted now is noted when it is seen again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
import structlog

from ojs_nats.crossings import SPACING_MS, CrossingRecord, Level
from ojs_nats.errors import OjsError
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Conflict
from ojs_nats.store.link import Link
from ojs_nats.store.lru import Lru
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.records import Records
from ojs_nats.store.swap import Swap, Swapper
from ojs_nats.transitions import Moment

__all__ = ["Crossings"]

log = structlog.get_logger(__name__)

MAX_TRIES: Final = 5
_TTL_S: Final = 30 * 86_400
_KNOWN: Final = 10_000
_KNOWN_S: Final = 1.0

Decide = Callable[[CrossingRecord | None, Moment], CrossingRecord | None]
"""What becomes of a record; None leaves it as it is."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(CrossingRecord).decode


class _Known(NamedTuple):
    """What a record said, what was wanted then, and until when (loop time) that needs no second look."""

    level: Level
    wanted: Level
    until: float
    again_at: int | None
    """When the wish, which came too soon after the last change, can be told (server time, Unix ms)."""


class Crossings:
    """Any number of processes may note the same: the first one's swap is what is told."""

    def __init__(self, link: Link, records: Records, clock: ServerClock, config: StoreConfig) -> None:
        self._records = records
        self._clock = clock
        self._config = config
        self._swapper = Swapper(link, records, config.records_stream)
        self._known: Lru[_Known] = Lru(_KNOWN)

    def level(self, scope: str) -> Level:
        """As this process last saw it."""
        known = self._known.get(scope)
        return "calm" if known is None else known.level

    async def note(self, scope: str, level: Level, decide: Decide) -> int | None:
        """See to it that a scope is told to stand at `level`, by a pure decision.

        When it can be told if it is too soon now (server time, Unix ms), else None.
        """
        known = self._known.get(scope)
        if known is not None and level in (known.level, known.wanted) and _now() < known.until:
            return known.again_at if level != known.level else None
        try:
            return await self._change(scope, level, decide)
        except OjsError as error:
            log.debug("a crossing was not noted", scope=scope, reason=error.message)
            return None

    async def clear(self) -> None:
        """Forget what was read (reset)."""
        self._known.clear()

    async def _change(self, scope: str, level: Level, decide: Decide) -> int | None:
        subject = self._config.crossing(scope)
        for _ in range(MAX_TRIES):
            sequence, body = await self._records.leader_raw(subject) or (0, b"")
            old = _decode(body) if body else None
            moment = self._clock.moment()
            new = decide(old, moment)
            if new is None:
                return self._keep(scope, old, level, moment.now)
            try:
                await self._swapper.swap(_swap(subject, new, sequence))
            except Conflict:
                continue
            self._keep(scope, new, level, moment.now)
            return None
        return None

    def _keep(self, scope: str, record: CrossingRecord | None, wanted: Level, now: int) -> int | None:
        found = "calm" if record is None else record.level
        again_at, seconds = None, _KNOWN_S
        if found == "calm" and wanted != "calm" and record is not None and record.log:
            again_at = max(record.log[-1].at + SPACING_MS, now)
            seconds = (again_at - now) / 1_000
        self._known.put(scope, _Known(found, wanted, _now() + seconds, again_at), 1)
        return again_at


def _swap(subject: str, record: CrossingRecord, expected: int) -> Swap:
    def mine(body: bytes) -> bool:
        return _decode(body).op == record.op

    return Swap(subject=subject, body=_encode(record), expected=expected, mine=mine, ttl_s=_TTL_S)


def _now() -> float:
    return asyncio.get_running_loop().time()
