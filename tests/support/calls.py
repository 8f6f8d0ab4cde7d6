"""The functions of features that are called meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def calls_of_features() -> Iterator[set[str]]:
    """Yield the functions of features that this thread calls meanwhile."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and "/ojs_features/" in frame.f_code.co_filename:
            found.add(f"{frame.f_code.co_filename.rpartition('/ojs_features/')[2]}: {frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
