"""Reports of failures that are larger than a record may carry: their middle is cut, and they say so."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import NOTHING

_HEAD: Final = 3
"""A third of what stays is from the beginning: some languages name the place of the error there, others at the end."""
_LEAST: Final = 100
"""Bytes of a member that are worth having."""
_NOTE_BYTES: Final = 120


def shortened(trace: Raw, limit: int) -> Raw:
    """Return a backtrace of at most `limit` bytes: its first and last lines, with a line that says how much is cut."""
    if len(trace) <= limit:
        return trace or NOTHING
    value = msgspec.json.decode(trace)
    return Raw(msgspec.json.encode(_cut(value, limit - _NOTE_BYTES, f"the limit is {limit:,} bytes")))


def shortened_members(details: Raw, limit: int) -> Raw:
    """Return an object of at most `limit` bytes: its small members as they are, of large texts and lists a part.

    Its member `truncated` says how large it was. Members for which there is no room are left out.
    """
    if len(details) <= limit:
        return details or NOTHING
    note = {"actual_bytes": len(details), "max_bytes": limit}
    value = msgspec.json.decode(details)
    if not isinstance(value, dict):
        return Raw(msgspec.json.encode({"dropped": True, **note}))
    sizes = {name: len(msgspec.json.encode({name: member})) for name, member in value.items()}
    room = limit - _NOTE_BYTES
    kept: dict[str, Any] = {}
    for place, name in enumerate(sorted(sizes, key=sizes.__getitem__)):
        share = room // (len(sizes) - place)
        member = value[name]
        if sizes[name] > share:
            left = share - len(msgspec.json.encode(name)) - _NOTE_BYTES
            if left < _LEAST:
                continue
            member = _cut(member, left, "the details are too large")
        kept[name] = member
        room -= len(msgspec.json.encode({name: member}))
    return Raw(msgspec.json.encode({name: kept[name] for name in value if name in kept} | {"truncated": note}))


def _cut(value: Any, most: int, reason: str) -> Any:
    """Return the beginning and the end of a text, or of a list of texts, in about `most` bytes of JSON."""
    if isinstance(value, str):
        return "\n".join(_lines(value.split("\n"), most, reason))
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return _lines(value, most, reason)
    return f"dropped: {len(msgspec.json.encode(value)):,} bytes; {reason}"


def _lines(lines: list[str], most: int, reason: str) -> list[str]:
    first = _fitting(lines, most // _HEAD)
    last = _fitting(lines[len(first) :][::-1], most - _bytes(first))[::-1]
    if not last:
        last = [_end_of(lines[-1], most - _bytes(first))]
    return [*first, f"… cut here: {_bytes(lines):,} bytes in all; {reason}", *last]


def _fitting(lines: list[str], most: int) -> list[str]:
    for place, line in enumerate(lines):
        most -= _bytes([line])
        if most < 0:
            return lines[:place]
    return lines


def _end_of(line: str, most: int) -> str:
    """Return as much of the end of a line as fits: its bytes are found by halves, since characters differ in size."""
    kept = line[-most:] if most > 0 else ""
    while _bytes([kept]) > most and kept:
        kept = kept[len(kept) // 8 + 1 :]
    return kept


def _bytes(lines: list[str]) -> int:
    return sum(len(msgspec.json.encode(line)) + 1 for line in lines)
