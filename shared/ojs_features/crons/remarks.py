"""Remarks about a schedule that its author may not expect: days that are restricted twice, and clocks put forward; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from ojs_engine.base.wording import counted
from ojs_features.crons.expression import Every, parse_expression
from ojs_features.crons.schedule import next_gap

_AHEAD_DAYS: Final = 366


def remarks(expression: str, zone: str, after: int) -> list[str]:
    """Return sentences about an expression that can be used in a zone, as of `after` (Unix ms)."""
    schedule = parse_expression(expression)
    if isinstance(schedule, Every):
        return []
    found = [_TWICE[schedule.days]] if schedule.days in _TWICE else []
    gap = next_gap(expression, zone, after, _AHEAD_DAYS)
    if gap is not None:
        at = datetime.fromtimestamp(gap.at // 1_000, UTC).astimezone(ZoneInfo(zone))
        runs = f"{counted(gap.count, 'run')} {'is' if gap.count == 1 else 'are'}"
        found.append(f"clocks in {zone} are put forward on {at:%Y-%m-%d}, and {runs} left out then")
    return found


_TWICE: Final = {
    "either": "both day fields are restricted, so it fires on the days of either",
    "both": "a day field begins with *, so it fires only on days that fit both day fields",
}
