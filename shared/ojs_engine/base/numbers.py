"""The numbers that may be stored or sent, bounded: whatever is read can be written, added up and indexed (docs/adr/028).

As types of members they are held to by whoever decodes a record or a request.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from msgspec import Meta

from ojs_api import members

EARLIEST_MS: Final = -62_135_596_800_000
"""0001-01-01T00:00:00.000Z"""
LATEST_MS: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z"""
LONGEST_MS: Final = members.LONGEST_MS
_DECIMAL: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
MAX_INTEGER: Final = members.MOST_WHOLE

At = Annotated[int, Meta(ge=EARLIEST_MS, le=LATEST_MS)]
"""A moment in Unix milliseconds."""
Ms = Annotated[int, Meta(ge=0, le=LONGEST_MS)]
"""A duration in milliseconds."""
Positive = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
"""What something is divided by."""
Priority = Annotated[int, Meta(ge=-100, le=100)]
Whole = members.Whole


def whole_number(text: str, digits: int) -> int | None:
    """Return the number that a text of 1 to `digits` ASCII digits is.

    None for any other text, also where `int` takes it (`٣`, `1_0`).
    """
    return int(text) if len(text) <= digits and text.isascii() and text.isdigit() else None


def decimal_number(text: str) -> float | None:
    """Return the number that a text such as `2`, `0.5`, `-1.` or `1e3` is.

    None for any other text, also where `float` takes it (`٣`, `nan`).
    """
    return float(text) if _DECIMAL.fullmatch(text) else None
