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

from ojs_core.base.errors import OjsError
from ojs_core.base.lru import Lru
from ojs_core.domain.threshold_alerts import SPACING_MS, AlertLevel, AlertRecord
from ojs_core.domain.transitions import Moment
from ojs_core.jetstream.reading import RecordReader
from ojs_core.store.records.bucket import Bucket
from ojs_core.store.records.documents import Beside, Documents

log = structlog.get_logger(__name__)

_TTL_S: Final = 30 * 86_400
_BUDGET_S: Final = 2.0
"""Pushes and fetches wait for it."""
_KNOWN: Final = 10_000
_KNOWN_S: Final = 1.0

DecideAlert = Callable[[AlertRecord | None, Moment], AlertRecord | None]
"""What becomes of a record; None leaves it as it is."""


def _sound(_scope: str, record: AlertRecord) -> None:
    if not record.name:
        raise ValueError("it is of no limit")


alert_reader: Final = RecordReader("crossing", msgspec.json.Decoder(AlertRecord).decode, _sound)


class _Known(NamedTuple):
    """What a record said, what was wanted then, and until when (loop time) that needs no second look."""

    level: AlertLevel
    wanted: AlertLevel
    until: float
    again_at: int | None
    """When the wish, which came too soon after the last change, can be told (server time, Unix ms)."""


class ThresholdAlerts:
    """Any number of processes may note the same: the first one's swap is what is told."""

    def __init__(self, bucket: Bucket) -> None:
        self._clock = bucket.clock
        self._documents = Documents(bucket, bucket.config.crossing, alert_reader, lambda record, op: record.op == op)
        self._known: Lru[_Known] = Lru(_KNOWN)

    def level(self, scope: str) -> AlertLevel:
        """As this process last saw it."""
        known = self._known.get(scope)
        return "calm" if known is None else known.level

    async def note(self, scope: str, level: AlertLevel, decide: DecideAlert) -> int | None:
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

    async def _change(self, scope: str, level: AlertLevel, decide: DecideAlert) -> int | None:
        _, old, new = await self._documents.change(scope, decide, lambda _old, _new: Beside(ttl_s=_TTL_S), budget_s=_BUDGET_S)
        again_at = self._keep(scope, new, level, self._clock.now())
        return again_at if new is old else None

    def _keep(self, scope: str, record: AlertRecord | None, wanted: AlertLevel, now: int) -> int | None:
        found = "calm" if record is None else record.level
        again_at, seconds = None, _KNOWN_S
        if found == "calm" and wanted != "calm" and record is not None and record.log:
            again_at = max(record.log[-1].at + SPACING_MS, now)
            seconds = (again_at - now) / 1_000
        self._known.put(scope, _Known(found, wanted, _now() + seconds, again_at), 1)
        return again_at


def _now() -> float:
    return asyncio.get_running_loop().time()
