"""Announcing that a limit or a bound is reached, or left (docs/adr/139).

The last announcement is read from the event stream, where all processes find the same. Two that see a change at
once announce it with one message id, so it is stored once. What a process has read holds for a second, so that a
flood of jobs under one limit costs one look a second. Nothing here fails a request: what can't be announced now is
announced when it is seen again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.lru import Lru
from ojs_engine.domain import threshold_alerts
from ojs_engine.domain.threshold_alerts import AlertLevel, Alerts, Announced, QueueBound, Threshold
from ojs_engine.jetstream.contents import message
from ojs_engine.jetstream.subjects import encode_token
from ojs_engine.store.announce import Once, announce
from ojs_engine.store.records.bucket import Bucket
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_KNOWN: Final = 10_000
_OF_KEYS: Final = "limit"
"""The events of keys' limits are filed under it."""

_parse_event = msgspec.json.Decoder(dict[str, dict[str, Any] | str]).decode


class AlertTimings(Timings, frozen=True, kw_only=True):
    """How long announcements are believed in."""

    known_s: float = 1.0
    """How long an announcement that was read needs no second look."""


class ThresholdAlerts:
    """Any number of processes may see the same."""

    def __init__(self, bucket: Bucket, timings: AlertTimings) -> None:
        self._timings = timings
        self._bucket = bucket
        self._known: Lru[tuple[Announced, float]] = Lru(_KNOWN)
        """The last announcements that were read, and until when (loop time) they need no second look."""

    def level(self, threshold: Threshold) -> AlertLevel:
        """Return how a threshold stands, as this process last read it."""
        return self._last(threshold)[0].level

    async def pressed(self, found: QueueBound) -> None:
        """See to it that a bounded queue is told of as it was found."""
        threshold = Threshold(found.queue, found.queue, bound=True)
        await self._note(threshold, lambda last, now: threshold_alerts.pressed(last, found, now))

    async def exceeded(self, limit: Threshold, hit: dict[str, Any]) -> None:
        """See to it that a limit is told to hold jobs up."""
        await self._note(limit, lambda last, now: threshold_alerts.exceeded(last, limit, hit, now))

    async def released(self, limit: Threshold, job_id: str | None) -> None:
        """See to it that a limit is told to hold no job up any more; the last one was `job_id`."""
        await self._note(limit, lambda last, _now: threshold_alerts.released(last, limit, job_id))

    async def clear(self) -> None:
        """Forget what was read (reset)."""
        self._known.clear()

    def _last(self, threshold: Threshold) -> tuple[Announced, float]:
        return self._known.get(threshold) or (Announced(), 0.0)

    async def _note(self, threshold: Threshold, news: Callable[[Announced, int], Alerts]) -> None:
        last, until = self._last(threshold)
        now, loop = self._bucket.clock.now(), asyncio.get_running_loop()
        if loop.time() < until and not news(last, now):
            return
        try:
            last = await self._read(threshold) or last  # an event that has left the stream counts on
            last = await self._announce(threshold, last, news(last, now))
        except (OjsError, msgspec.MsgspecError) as error:
            log.debug("an alert waits until it is seen again", name=threshold.name, reason=str(error))
            return
        self._known.put(threshold, (last, loop.time() + self._timings.known_s), 1)

    async def _announce(self, threshold: Threshold, last: Announced, alerts: Alerts) -> Announced:
        """Return what was announced last then. Raises as `message`."""
        scope, found = _scope(threshold), last
        if not alerts:
            return last
        before = f"{last.sequence}" if last.sequence else f"reset {await self._last_reset()}"
        for event_type, data in alerts:
            # Who has read the same last announcement names the same: only the first one is stored.
            once = Once(f"{event_type} {scope} {threshold.name} {before}", self._bucket.clock.now())
            name = threshold.name
            sequence = await announce(self._bucket, event_type, scope=scope, subject=name, data=data, once=once)
            if sequence is None:
                return found
            found = Announced(threshold.levels[event_type], once.at, sequence, data.get("strategy"))
        return found

    async def _read(self, threshold: Threshold) -> Announced | None:
        """Return the last announcement that is stored, as the leader of the event stream has it. Raises as `message`."""
        config, nats = self._bucket.config, self._bucket.nats
        scope, subject, levels = _scope(threshold), encode_token(threshold.name), threshold.levels
        names = [config.event(event_type, scope, subject) for event_type in levels]
        stored = await asyncio.gather(
            *(message(nats, config.events_stream, {"last_by_subj": name}, "alerts") for name in names)
        )
        found = [(event, level) for event, level in zip(stored, levels.values(), strict=True) if event is not None]
        if not found:
            return None
        event, level = max(found, key=lambda one: one[0].seq)
        data = _parse_event(event.data).get("data")
        return Announced(level, event.at, event.seq, data.get("strategy") if isinstance(data, dict) else None)

    async def _last_reset(self) -> int:
        """Return where the last reset ended, 0 if there was none: nats-server remembers the ids of purged messages."""
        config = self._bucket.config
        mark = await message(self._bucket.nats, config.records_stream, {"last_by_subj": config.epoch}, "the last reset")
        return 0 if mark is None else mark.seq


def _scope(threshold: Threshold) -> str:
    return _OF_KEYS if threshold.queue is None else threshold.queue
