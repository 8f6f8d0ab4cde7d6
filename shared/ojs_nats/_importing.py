"""Imports that wait until they are needed, in programs that may fork meanwhile."""

from __future__ import annotations

import logging  # noqa: F401  # registered for forks before this: what is being imported may wait for its lock
import os
import threading
from typing import Final

importing: Final = threading.RLock()
"""Held by imports within functions. No process is forked until they are over: a child would wait without end for what a
thread of its parent had begun to import.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=importing.acquire, after_in_parent=importing.release, after_in_child=importing.release)
