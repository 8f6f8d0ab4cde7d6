"""One module for each library, set up as its own documents advise. It is run in an environment that has them all:

`python -m contenders.NAME push N` stores N jobs that do nothing but `mark()`; what runs them stands in `libraries.CONTENDERS`.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

JOBS = int(os.environ.get("JOBS", "0"))
CONCURRENCY = int(os.environ.get("CONCURRENCY", "10"))
_began = 0.0
_count = 0


def mark() -> None:
    """What every job does: the first and the last note the time, so that a worker's start isn't counted."""
    global _began, _count  # noqa: PLW0603
    _count += 1
    if _count == 1:
        _began = time.perf_counter()
    elif _count == JOBS:
        Path(os.environ["DONE"]).write_text(str(time.perf_counter() - _began), encoding="utf-8")
