"""The version of this package."""

from __future__ import annotations

import importlib.metadata
import platform


def shown() -> str:
    """Return what `ojs-nats --version` prints."""
    return f"ojs-nats {importlib.metadata.version('ojs-nats')} (Python {platform.python_version()})"
