"""Loaded by every Python process that has this folder on its PYTHONPATH: SIGUSR1 makes it print what its threads are doing."""

from __future__ import annotations

import faulthandler
import signal

__all__: list[str] = []

faulthandler.register(signal.SIGUSR1)
