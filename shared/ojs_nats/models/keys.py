"""API keys and their limits."""

from __future__ import annotations

from ojs_api.keys import Key, KeyLimits, MadeKey

__all__ = ["Key", "KeyLimits", "MadeKey"]
