"""Numbers and lengths of time in sentences for people."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def duration(seconds: float) -> str:
    """`3h20m`, in its two largest units; below a second in milliseconds."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1_000:.0f}ms"
    left = int(seconds)
    for place, (unit, size) in enumerate(_UNITS):
        if left >= size:
            rest = left % size
            smaller = _UNITS[place + 1 : place + 2]
            more = f"{rest // smaller[0][1]}{smaller[0][0]}" if smaller and rest >= smaller[0][1] else ""
            return f"{left // size}{unit}{more}"
    return "0s"


def counted(number: int, one: str) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
