"""Loaded by every Python process that has this folder on its PYTHONPATH: its machine's date can be set while it runs.

The date is off by the number of seconds in the file `$STEPPED_DATES/<process id>`, if there is one. Steady clocks go on as they
are, as they do when a date is set. What is forked has a file of its own, and may be given the folder after the fork.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

__all__: list[str] = []

_LOOK_NS = 20_000_000


def _install() -> None:
    read_at = 0
    off_ns = 0

    def off() -> int:
        nonlocal read_at, off_ns
        now = time.monotonic_ns()
        if now - read_at > _LOOK_NS:
            read_at = now
            try:
                file = Path(os.environ["STEPPED_DATES"]) / str(os.getpid())
                off_ns = int(float(file.read_text(encoding="utf-8")) * 1e9)
            except (KeyError, FileNotFoundError, ValueError):  # none, or half of it
                pass
        return off_ns

    def shifted_ns(original: Callable[[], int]) -> Callable[[], int]:
        return lambda: original() + off()

    def shifted(original: Callable[[], float]) -> Callable[[], float]:
        return lambda: original() + off() / 1e9

    def dated(original: Callable[[int], float]) -> Callable[[int], float]:
        return lambda clock: original(clock) + (off() / 1e9 if clock == time.CLOCK_REALTIME else 0.0)

    def dated_ns(original: Callable[[int], int]) -> Callable[[int], int]:
        return lambda clock: original(clock) + (off() if clock == time.CLOCK_REALTIME else 0)

    time.time = shifted(time.time)
    time.time_ns = shifted_ns(time.time_ns)
    time.clock_gettime = dated(time.clock_gettime)
    time.clock_gettime_ns = dated_ns(time.clock_gettime_ns)


_install()
