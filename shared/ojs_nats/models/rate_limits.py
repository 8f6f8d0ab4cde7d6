"""Limits that jobs share by a key."""

from __future__ import annotations

from ojs_api.limits import ConcurrencyLimit, Limit, LimitOverride, RateLimit, StartRate, ThrottleLimit

__all__ = ["ConcurrencyLimit", "Limit", "LimitOverride", "RateLimit", "StartRate", "ThrottleLimit"]
