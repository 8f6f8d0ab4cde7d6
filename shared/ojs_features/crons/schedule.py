"""When an expression fires in a zone (ojs-cron §5): the moments at which a clock on the wall there shows a matching
time.

A wall-clock time that a spring-forward change leaves out doesn't fire and is reported; one that a fall-back change
repeats fires the first time. croniter only ever sees wall-clock times; the way to UTC and back is zoneinfo's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from ojs_engine.base.numbers import LATEST_MS
from ojs_features.crons.expression import Every, Fields, parse_expression

_CACHED: Final = 4_096
_DAY_S: Final = 86_400
_parsed: Final = lru_cache(maxsize=_CACHED)(parse_expression)


class BadZone(ValueError):
    """A time zone that can't be used."""


class Gap(Struct, frozen=True):
    """Occurrences whose wall-clock times don't exist, because clocks were put forward at `at` (Unix ms)."""

    at: int
    tick: int
    """When the first of them would have been, had clocks not been put forward (Unix ms)."""
    count: int


class Next(Struct, frozen=True):
    """The next tick (Unix ms), and what falls into a gap before it."""

    at: int
    gap: Gap | None = None


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


def check_zone(name: str) -> str:
    """The name of an IANA zone: `UTC` or `Area/Location`. Raises BadZone for offsets, abbreviations and all else.

    The database also has `EST` or `Japan`; abbreviations have no daylight saving time and mean different things in
    different places, so only names with an area count (ojs-cron §5.1).
    """
    if name == "UTC" or ("/" in name and name in _zones()):
        return name
    raise BadZone("not the name of an IANA time zone such as Europe/Berlin or UTC; offsets and abbreviations don't count")


@lru_cache(maxsize=_CACHED)
def following(expression: str, zone: str, anchor: int, after: int) -> Next:
    """The first tick later than `after`. `anchor` is what `@every` counts from. All times in Unix milliseconds."""
    schedule = _parsed(expression)
    if isinstance(schedule, Every):
        passed = max(0, (after - anchor) // schedule.interval_ms)
        return Next(anchor + (passed + 1) * schedule.interval_ms)
    return _next_on_wall(schedule, ZoneInfo(zone), after)


def coming(expression: str, zone: str, anchor: int, after: int, count: int) -> list[int]:
    """Return the next `count` ticks later than `after`, fewer if the calendar ends before."""
    found: list[int] = []
    while len(found) < count:
        after = following(expression, zone, anchor, after).at
        if after > LATEST_MS:
            break
        found.append(after)
    return found


def next_gap(expression: str, zone: str, after: int, days: int) -> Gap | None:
    """Return the first occurrences within so many days that fall into a gap, because clocks are put forward there."""
    schedule, there = _parsed(expression), ZoneInfo(zone)
    if isinstance(schedule, Every):
        return None
    for day in range(days):
        start = after // 1_000 + day * _DAY_S
        if _offset(there, start + _DAY_S) > _offset(there, start):
            change = _change_before(there, (start + _DAY_S) * 1_000)
            gap = _next_on_wall(schedule, there, change - 1_000).gap
            if gap is not None and gap.at == change:
                return gap
    return None


def _next_on_wall(fields: Fields, zone: ZoneInfo, after: int) -> Next:
    gap: Gap | None = None
    for wall in fields.times(datetime.fromtimestamp(after // 1_000, zone).replace(tzinfo=None)):
        there = wall.replace(tzinfo=zone)  # fold 0: the first of two, in a gap counted by the offset before it
        at = round(there.timestamp()) * 1_000
        if at <= after:
            continue  # the second time that clocks show this hour
        if there.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall:
            return Next(at, gap)
        gap = Gap(_change_before(zone, at), at, 1) if gap is None else Gap(gap.at, gap.tick, gap.count + 1)
    raise AssertionError("croniter's times have no end")


def _change_before(zone: ZoneInfo, at: int) -> int:
    """When clocks were put forward, given a moment at which they would show a time that was left out."""
    high = at // 1_000
    low = high - _DAY_S
    before = _offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high * 1_000


def _offset(zone: ZoneInfo, at: int) -> float:
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    assert offset is not None
    return offset.total_seconds()
