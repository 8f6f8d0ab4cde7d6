"""Durations as people write them: `"30s"`, `"1h30m"`, `timedelta`, or seconds as a number."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LONGEST_MS: Final = 3_650 * 86_400_000
"""Ten years: the server takes none that is longer."""
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)

_MOMENT: Final = "a datetime with a time zone, as datetime.now(UTC) + timedelta(minutes=1)"
_MINUTE: Final = timedelta(minutes=1)
_KINDS: Final = 'a duration is a text like "30s", a timedelta, or seconds as a number'

Duration = str | timedelta | float
"""`"30s"`, `"1h30m"`, `"250ms"`, `"2d"`; a timedelta; or seconds."""


def milliseconds(duration: Duration) -> int:
    """Raises ValueError for what isn't a duration, or is negative."""
    if isinstance(duration, str):
        if not _WHOLE.fullmatch(duration):
            raise ValueError(f"a duration is written like 30s, 1h30m or 250ms, not {duration!r}")
        whole = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(duration))
    elif isinstance(duration, timedelta):
        whole = duration.total_seconds() * 1_000
    elif _is_number(duration):
        whole = duration * 1_000
    else:
        raise ValueError(f"{_KINDS}, not {duration!r}")
    if not 0 <= whole < 2**53:
        raise ValueError(f"a duration can't be negative or endless: {duration!r}")
    return round(whole)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def written(duration: Duration) -> str:
    """Return a duration as ISO 8601 has it."""
    seconds, rest = divmod(milliseconds(duration), 1_000)
    return f"PT{seconds}.{rest:03}S" if rest else f"PT{seconds}S"


def moment(when: datetime, name: str) -> str:
    """Return the moment as it is sent, in UTC where its offset has seconds, which RFC 3339 can't write.

    Raises TypeError for what isn't a datetime, ValueError for one without a time zone.
    """
    if not isinstance(when, datetime):
        raise TypeError(f"{name} is {_MOMENT}, not {when!r}")
    offset = when.utcoffset()
    if offset is None:
        raise ValueError(f"{name} needs a time zone: datetime.now(UTC), not {when!r}")
    return (when.astimezone(UTC) if offset % _MINUTE else when).isoformat()
