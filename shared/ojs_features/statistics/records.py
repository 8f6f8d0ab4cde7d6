"""The records that keep statistics: one for each minute with activity, and one for each hour, of all queues together.

Their names are `stats.<minute or hour>.<start in Unix s>.<part>` (docs/adr/018).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ojs_engine.base.numbers import Whole
from ojs_engine.jetstream.reading import RecordReader
from ojs_features.statistics.activity import Activity

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
KEPT_MS: Final = {MINUTE_MS: 24 * HOUR_MS, HOUR_MS: 31 * 24 * HOUR_MS}
"""How long the record of a span stays after it, by the span's length (ms)."""
PART_BYTES: Final = 512 * 1024
"""A record that would be larger is split by queues."""

_encode: Final = msgspec.json.Encoder().encode


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The activity of a minute or an hour, by queue. The first of several parts is written last, and completes it."""

    start: Whole
    """Unix ms."""
    length: Whole
    """60,000 or 3,600,000 (ms)."""
    part: Whole = 0
    parts: Whole = 1
    by: str = ""
    """The instance that wrote it."""
    queues: dict[str, Activity]


def parts_of(start: int, length: int, queues: Mapping[str, Activity], *, by: str = "", limit: int = PART_BYTES) -> list[Span]:
    """The record of a span, in as many parts as `limit` (bytes) asks for, in the order in which they are to be written."""
    groups: list[dict[str, Activity]] = [{}]
    size = 0
    for name in sorted(queues):
        more = len(_encode({name: queues[name]}))
        if groups[-1] and size + more > limit:
            groups.append({})
            size = 0
        groups[-1][name] = queues[name]
        size += more
    number = len(groups)
    spans = [
        Span(start=start, length=length, part=part, parts=number, by=by, queues=group) for part, group in enumerate(groups)
    ]
    return [*spans[1:], spans[0]]


_LENGTHS: Final = {"minute": MINUTE_MS, "hour": HOUR_MS}


def _sound(name: str, span: Span) -> None:
    kind, _, rest = name.partition(".")
    if span.length != _LENGTHS.get(kind) or span.start % MINUTE_MS or rest != f"{span.start // 1_000}.{span.part}":
        raise ValueError("it is the record of another span")


span_reader: Final = RecordReader("stats", msgspec.json.Decoder(Span).decode, _sound)
