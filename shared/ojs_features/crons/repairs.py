"""Cron entries whose timer is gone."""

from __future__ import annotations

from ojs_engine.base.errors import OjsError
from ojs_engine.base.timings import of_kind
from ojs_engine.store.store import Store
from ojs_features.crons.index import overdue
from ojs_features.crons.store import Crons
from ojs_features.crons.timings import CronRepairTimings
from ojs_index.followed import Found, Index
from ojs_link.timings import Timings


class LostTimers:
    """The search for entries whose timer is gone."""

    def __init__(self, store: Store, index: Index, found: Found, timings: tuple[Timings, ...]) -> None:
        self._crons = store.of(Crons)
        self._clock = store.clock
        self._index = index
        self._found = found
        self._timings = of_kind(CronRepairTimings, timings)
        self._after = ""

    async def look(self) -> None:
        """Set the timers of the next few entries again that should have fired and that nothing will wake."""
        late = self._clock.now() - self._timings.grace_ms
        tokens = overdue(self._index.db, late, self._after, self._timings.at_once)
        self._after = tokens[-1] if len(tokens) == self._timings.at_once else ""
        crons = self._crons
        for stored in (await crons.many(tokens)).values() if tokens else ():
            cron = stored.cron
            if cron is None or cron.timer is None or cron.timer.at >= late or await crons.waits(cron.name, cron.timer):
                continue
            try:
                if (await crons.get(cron.name)).timer != cron.timer:  # it was handled in this moment
                    continue
            except OjsError as error:
                if error.code != "not_found":
                    raise
                continue
            await crons.rearm(cron.name, cron.timer)
            self._found("cron", cron=cron.name)
