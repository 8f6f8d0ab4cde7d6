"""What clients ask of statistics over time (ojs-admin-api §10.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ojs_api import words
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import queue_name, shown, timestamp
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_features.statistics.records import HOUR_MS, KEPT_MS, MINUTE_MS
from ojs_features.statistics.series import HistoryAsk

_DAY_MS: Final = 24 * HOUR_MS
Period = words.Period
_PERIODS: Final[Mapping[Period, int]] = {"1m": MINUTE_MS, "5m": 5 * MINUTE_MS, "1h": HOUR_MS, "1d": _DAY_MS}
_DEFAULT_PERIOD: Final = "5m"
_DEFAULT_SPANS: Final[Mapping[Period, int]] = {"1m": HOUR_MS, "5m": HOUR_MS, "1h": _DAY_MS, "1d": 31 * _DAY_MS}
_UNITS: Final = {"m": MINUTE_MS, "h": HOUR_MS, "d": _DAY_MS}
_AGO: Final = re.compile(r"([0-9]{1,6})([mhd])", re.ASCII)


def period_of(query: Mapping[str, str]) -> Period:
    """The length of a point."""
    sent = query.get("period") or _DEFAULT_PERIOD
    for period in _PERIODS:
        if sent == period:
            return period
    raise invalid("period", f"period must be one of {', '.join(_PERIODS)}, not {shown(sent)}")


def parse_history(query: Mapping[str, str], now: int, limits: PayloadLimits, queue: str | None = None) -> HistoryAsk:
    """GET /admin/stats/history?period&since&until&queue; `from` and `to` are the same as `since` and `until`.

    Times are RFC 3339 timestamps, or `30m`, `24h`, `7d` for so long ago. What is no longer kept is left out.
    """
    period = period_of(query)
    step = _PERIODS[period]
    until = _time(query, ("until", "to"), now)
    until = min(now if until is None else until, now) + 1
    since = _time(query, ("since", "from"), now)
    if since is None:
        since = until - _DEFAULT_SPANS[period]
    elif since >= until:
        raise invalid("since", "since must be before until, and not in the future")
    kept = KEPT_MS[HOUR_MS if step >= HOUR_MS else MINUTE_MS]
    if queue is None and query.get("queue"):
        queue = queue_name(query["queue"], "queue", limits)
    return HistoryAsk(queue=queue, step_ms=step, since=max(since, now - kept), until=max(until, now - kept))


def _time(query: Mapping[str, str], names: tuple[str, ...], now: int) -> int | None:
    for name in names:
        text = query.get(name)
        if text:
            ago = _AGO.fullmatch(text)
            return now - int(ago[1]) * _UNITS[ago[2]] if ago else timestamp(text, name)
    return None
