"""The numbers that may be stored or sent, bounded: whatever is read can be written, added up and indexed (docs/adr/028).

As types of members they are held to by whoever decodes a record or a request.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

EARLIEST_MS: Final = -62_135_596_800_000
"""0001-01-01T00:00:00.000Z"""
LATEST_MS: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z"""
LONGEST_MS: Final = 10 * 366 * 86_400_000
"""Ten years: the longest duration that a client may name."""
MAX_INTEGER: Final = 2**53 - 1
"""What every reader of JSON takes for exact."""

At = Annotated[int, Meta(ge=EARLIEST_MS, le=LATEST_MS)]
"""A moment in Unix milliseconds."""
Ms = Annotated[int, Meta(ge=0, le=LONGEST_MS)]
"""A duration in milliseconds."""
Positive = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
"""What something is divided by."""
Priority = Annotated[int, Meta(ge=-100, le=100)]
Whole = Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER)]
"""An integer that has no limits of its own."""
