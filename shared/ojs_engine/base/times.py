"""RFC 3339 timestamps and durations, as Unix milliseconds and milliseconds.

Durations come as ISO 8601 (`PT1M30S`), as Go writes them (`1m30s`) and, with a sign, as a timestamp relative to now
(`+PT5S`). Years and months have no fixed length and are refused.

Everything read here can be written, indexed and computed with: a moment lies in the years 1 to 9999 of UTC, and a distance from
now is at most `LONGEST_MS`. What is written needs no such care: `format_ms` has an answer for every number (docs/adr/028).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

from ojs_engine.base.numbers import EARLIEST_MS, LATEST_MS, LONGEST_MS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_NUMBER: Final = r"(\d+(?:[.,]\d+)?)"
_ISO: Final = re.compile(
    rf"P(?=.)(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=.)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.ASCII
)
_ISO_UNITS: Final = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000)
_GO: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h|d|w))+", re.ASCII)
_GO_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|s|m|h|d|w)", re.ASCII)
_SHORT_UNITS: Final = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1}
# Days and weeks aren't Go's, but what the CLI tells its users to write.
_GO_UNITS: Final = _SHORT_UNITS | {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONGEST: Final = 64
_MILLIS: Final = tuple(f".{millis:03d}Z" for millis in range(1_000))
"""How a timestamp ends. An answer has several timestamps: looked up, each costs a third of what formatting does."""


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def format_ms(at: int) -> str:
    """Unix milliseconds as RFC 3339 in UTC with milliseconds: `2026-02-12T10:30:00.000Z`.

    What lies beyond the years that RFC 3339 has is written as the nearest moment that it has.
    """
    if not EARLIEST_MS <= at <= LATEST_MS:
        at = EARLIEST_MS if at < EARLIEST_MS else LATEST_MS
    return _second(at // 1_000) + _MILLIS[at % 1_000]


def parse_timestamp(text: str) -> int:
    """RFC 3339 with any offset -> Unix milliseconds, rounded down. Raises ValueError; the zone is not optional.

    An offset or a leap second can lead out of the years 1 to 9999, which are those of UTC.
    """
    match = _TIMESTAMP.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError("not an RFC 3339 timestamp with a zone")
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    leap = second == 60  # RFC 3339 §5.7; Unix time has no name for it but that of the second after
    zone = UTC
    if match[8] is not None:
        hours, minutes = int(match[9]), int(match[10])
        if hours > 23 or minutes > 59:
            raise ValueError("its offset is out of range")
        offset = timedelta(hours=hours, minutes=minutes)
        zone = timezone(-offset if match[8] == "-" else offset)
    at = datetime(year, month, day, hour, minute, 59 if leap else second, tzinfo=zone)
    whole = (at - _EPOCH) // _MILLISECOND + (1_000 if leap else 0)
    return _within(whole + int(((match[7] or "") + "000")[:3]))


def _within(at: int) -> int:
    if not EARLIEST_MS <= at <= LATEST_MS:
        raise ValueError("it must lie in the years 0001 to 9999 of UTC")
    return at


def parse_duration_ms(text: str) -> int:
    """ISO 8601 or Go-style duration, with days and weeks as well -> milliseconds, rounded to the nearest. Raises ValueError."""
    if len(text) <= _LONGEST:
        match = _ISO.fullmatch(text)
        if match is not None:
            parts = zip(match.groups(), _ISO_UNITS, strict=True)
            return round(sum(float(number.replace(",", ".")) * unit for number, unit in parts if number))
        if _GO.fullmatch(text):
            return round(sum(float(number) * _GO_UNITS[unit] for number, unit in _GO_PART.findall(text)))
    raise ValueError("not a duration such as PT30S, PT1H30M, 30s or 1h30m")


def parse_moment(text: str, now: int) -> tuple[int, bool]:
    """A timestamp, or a duration of at most `LONGEST_MS` counted from `now`: (Unix milliseconds, whether it was a timestamp).

    Raises ValueError.
    """
    if text[:1] in "+P":
        ms = parse_duration_ms(text.removeprefix("+"))
        if ms > LONGEST_MS:
            raise ValueError(
                f"a duration from now may be at most {LONGEST_MS // 86_400_000} days; name a later time by its date"
            )
        return _within(now + ms), False
    return parse_timestamp(text), True


def format_duration(ms: int) -> str:
    """Milliseconds as an ISO 8601 duration in hours, minutes and seconds: 90_500 -> `PT1M30.5S`."""
    minutes, rest = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1_000:.3f}".rstrip("0").rstrip(".")
    text = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "") + (f"{seconds}S" if rest else "")
    return f"PT{text or '0S'}"


def format_age(seconds: int) -> str:
    """An age that is usually counted in days: `P180D`, else as `format_duration` writes it."""
    days, rest = divmod(seconds, 86_400)
    return f"P{days}D" if days and not rest else format_duration(seconds * 1_000)
