"""The records of statistics, `stats.<minute or hour>.<start in Unix s>.<part>` (docs/adr/018)."""

from __future__ import annotations

from typing import Final

import msgspec

from ojs_engine.domain.statistics.record import HOUR_MS, MINUTE_MS, Span
from ojs_engine.jetstream.reading import RecordReader

_LENGTHS: Final = {"minute": MINUTE_MS, "hour": HOUR_MS}


def _sound(name: str, span: Span) -> None:
    kind, _, rest = name.partition(".")
    if span.length != _LENGTHS.get(kind) or span.start % MINUTE_MS or rest != f"{span.start // 1_000}.{span.part}":
        raise ValueError("it is the record of another span")


span_reader: Final = RecordReader("stats", msgspec.json.Decoder(Span).decode, _sound)
